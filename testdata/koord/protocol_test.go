package koord_test

import (
	"context"
	"strings"
	"testing"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// both runs a test on both proxies.
func both(t *testing.T, test func(*node)) {
	t.Parallel()
	for _, p := range []proxy{wasmproxy, koordRuntimeProxy} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			test(newNode(t, p))
		})
	}
}

// check fails the test with an error.
func (n *node) check(err error) {
	n.Helper()
	if err != nil {
		n.Error(err)
	}
}

// TestRequests takes a pod and its container through their lives and compares
// every field of every request that a hook server gets. wasmproxy fills in
// attempt, overhead and the pod's resources, which koord-runtime-proxy leaves empty.
func TestRequests(t *testing.T) { both(t, testRequests) }

// TestInPlace does the same with wasmproxy called by koord-runtime-proxy's name
// and with its flags, in a directory /etc like its own.
func TestInPlace(t *testing.T) {
	t.Parallel()
	n := newNode(t, wasmproxy)
	n.putInPlace()
	testRequests(n)
}

func testRequests(n *node) {
	server := n.serve("10-a.json", addAnnotation, "Fail", allHooks...)
	n.start()
	pod, container := n.running()
	n.must(n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{
		CpuPeriod: 50000, CpuQuota: -1, CpuShares: 256, MemoryLimitInBytes: 64 << 20, CpusetCpus: "1", CpusetMems: "0-1",
		Unified: map[string]string{"memory.low": "1"}, MemorySwapLimitInBytes: 96 << 20,
	}}))
	n.must(n.stopContainer(container))
	n.must(n.stopPod(pod))
	for name, expected := range n.requests(container) {
		n.eventually(name+" is called", func() error { return want("times", len(server.toldOf(name)), 1) })
		n.check(wantProto(name, server.toldOf(name)[0].req, expected))
	}
}

// requests are those of TestRequests, by hook.
func (n *node) requests(container string) map[string]proto.Message {
	run := &podRequest{
		PodMeta:        &hook.PodSandboxMetadata{Name: "web", Uid: "uid-1", Namespace: "shop"},
		RuntimeHandler: "runc",
		Labels:         map[string]string{"app": "web", "io.kubernetes.pod.name": "web"},
		Annotations:    map[string]string{"kubernetes.io/config.source": "api"},
		CgroupParent:   "/kubepods/burstable/poduid-1",
	}
	create := &containerRequest{
		PodMeta:              run.PodMeta,
		PodLabels:            run.Labels,
		PodAnnotations:       map[string]string{"kubernetes.io/config.source": "api", "told": "PreRunPodSandbox"},
		PodCgroupParent:      "/kubepods/burstable/poduid-1",
		ContainerMeta:        &hook.ContainerMetadata{Name: "main", Attempt: 1},
		ContainerAnnotations: map[string]string{"io.kubernetes.container.restartCount": "1"},
		ContainerResources:   hookResources(),
		ContainerEnvs:        map[string]string{"GREETING": "hello", "PORT": "80", "EMPTY": ""},
	}
	if n.proxy == wasmproxy {
		run.PodMeta.Attempt = 2
		run.Overhead = &hook.LinuxContainerResources{CpuShares: 10, MemoryLimitInBytes: 1 << 20}
		run.Resources = &hook.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 512, MemoryLimitInBytes: 256 << 20}
		create.PodResources = run.Resources
	}
	start := with(create, func(r *containerRequest) {
		r.ContainerMeta.Id = container
		r.ContainerAnnotations["told"] = "PreCreateContainer"
	})
	update := with(start, func(r *containerRequest) {
		r.ContainerResources = &hook.LinuxContainerResources{
			CpuPeriod: 50000, CpuQuota: -1, CpuShares: 256, MemoryLimitInBytes: 64 << 20, OomScoreAdj: 900, CpusetCpus: "1", CpusetMems: "0-1",
			HugepageLimits: r.ContainerResources.HugepageLimits, Unified: map[string]string{"memory.high": "100000000", "memory.low": "1"},
			MemorySwapLimitInBytes: 96 << 20,
		}
	})
	return map[string]proto.Message{
		"PreRunPodSandbox":   run,
		"PostStopPodSandbox": with(run, func(r *podRequest) { r.Annotations = create.PodAnnotations }),
		"PreCreateContainer": create, "PreStartContainer": start, "PostStartContainer": start,
		"PreUpdateContainerResources": update, "PostStopContainer": update,
	}
}

// addAnnotation echoes, and notes at the first hooks that it was told.
func addAnnotation(ctx context.Context, name string, req proto.Message) (proto.Message, error) {
	resp, err := echoing(ctx, name, req)
	switch r := resp.(type) {
	case *podResponse:
		r.Annotations["told"] = name
	case *containerResponse:
		if name == "PreCreateContainer" {
			r.ContainerAnnotations["told"] = name
		}
	}
	return resp, err
}

// TestPodResponse holds which fields of a response to PreRunPodSandbox reach the
// runtime: labels and annotations are added and written over, never taken away,
// the cgroup parent counts unless it is empty, and resources do not.
func TestPodResponse(t *testing.T) {
	both(t, func(n *node) {
		n.serve("10-a.json", answering(&podResponse{
			Labels: map[string]string{"app": "shop", "new": "1"}, Annotations: map[string]string{"a": "1"}, CgroupParent: "/kubepods/burstable/poduid-1/batch",
			Resources: &hook.LinuxContainerResources{CpuShares: 2},
		}), "Fail", "PreRunPodSandbox")
		n.start()
		_, err := n.runPod(podConfig())
		n.must(err)
		n.check(wantProto("request", lastRequest[*cri.RunPodSandboxRequest](n.runtime), with(runRequest(), func(r *cri.RunPodSandboxRequest) {
			r.Config.Labels["app"], r.Config.Labels["new"] = "shop", "1"
			r.Config.Annotations["a"] = "1"
			r.Config.Linux.CgroupParent = "/kubepods/burstable/poduid-1/batch"
		})))
	})
}

// TestContainerResponse holds the same for PreCreateContainer: every field of
// the resources counts, and an environment that is not empty replaces all.
func TestContainerResponse(t *testing.T) {
	both(t, func(n *node) {
		got, err := n.created(answering(&containerResponse{
			ContainerAnnotations: map[string]string{"a": "1"}, PodCgroupParent: "/kubepods/burstable/poduid-1/batch",
			ContainerEnvs: map[string]string{"ONLY": "this"},
			ContainerResources: &hook.LinuxContainerResources{
				CpuPeriod: 50000, CpuQuota: -1, CpuShares: 2, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -7, CpusetCpus: "1", CpusetMems: "0-1",
				Unified: map[string]string{"memory.low": "1"}, MemorySwapLimitInBytes: 2 << 30,
			},
		}), containerConfig())
		n.must(err)
		n.check(wantProto("request", got, with(containerConfig(), func(c *cri.ContainerConfig) {
			c.Annotations["a"] = "1"
			c.Envs = envs("ONLY", "this")
			c.Linux.Resources = &cri.LinuxContainerResources{
				CpuPeriod: 50000, CpuQuota: -1, CpuShares: 2, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -7, CpusetCpus: "1", CpusetMems: "0-1",
				HugepageLimits: c.Linux.Resources.HugepageLimits, Unified: map[string]string{"memory.high": "100000000", "memory.low": "1"},
				MemorySwapLimitInBytes: 2 << 30,
			}
		})))
		n.check(want("cgroup parent", lastRequest[*cri.CreateContainerRequest](n.runtime).GetSandboxConfig().GetLinux().GetCgroupParent(), "/kubepods/burstable/poduid-1/batch"))
	})
}

// TestUpdateResponse holds that resources and annotations of a response to
// PreUpdateContainerResources reach the runtime.
func TestUpdateResponse(t *testing.T) {
	both(t, func(n *node) {
		got, err := n.updated(answering(&containerResponse{
			ContainerAnnotations: map[string]string{"a": "1"}, ContainerResources: &hook.LinuxContainerResources{CpuShares: 77, OomScoreAdj: 900, CpusetCpus: "0-1", CpusetMems: "0"},
		}), resources(), nil)
		n.must(err)
		n.check(wantProto("resources", got.GetLinux(), with(resources(), func(r *cri.LinuxContainerResources) { r.CpuShares = 77 })))
		n.check(want("annotation", got.GetAnnotations()["a"], "1"))
	})
}

// TestFailurePolicy has a server fail: under Fail the runtime is not asked, and
// kubelet is told what the server said; under Ignore, and without a policy, the
// request goes on as it came.
func TestFailurePolicy(t *testing.T) {
	for policy, passes := range map[string]bool{"Fail": false, "Ignore": true, "": true} {
		t.Run("policy "+policy, func(t *testing.T) {
			both(t, func(n *node) {
				n.serve("10-a.json", refusing(status.Error(codes.Internal, "no such device")), policy, "PreRunPodSandbox")
				n.start()
				_, err := n.runPod(podConfig())
				if n.check(want("passes", err == nil, passes)); !passes {
					n.check(want("pods", len(n.runtime.calls("RunPodSandbox")), 0))
					n.check(want("reason is told", strings.Contains(err.Error(), "no such device"), true))
					return
				}
				n.check(wantProto("request", lastRequest[*cri.RunPodSandboxRequest](n.runtime), runRequest()))
			})
		})
	}
}

// TestSkipLabel runs koordlet's own pod while its hook server is down: without
// the label that lets it by, a node on which nothing is ignored could not start it.
func TestSkipLabel(t *testing.T) {
	both(t, func(n *node) {
		server := n.serve("10-a.json", nil, "Fail", allHooks...)
		n.start()
		server.stop()
		_, err := n.runPod(podConfig())
		n.check(want("another pod runs", err == nil, false))
		config := with(podConfig(), func(c *cri.PodSandboxConfig) { c.Labels["runtimeproxy.koordinator.sh/skip-hookserver"] = "true" })
		pod, err := n.runPod(config)
		n.must(err)
		container, err := n.create(pod, containerConfig(), config)
		n.must(err)
		n.must(n.startContainer(container))
		n.must(n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: resources()}))
		n.check(wantProto("container", lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig(), containerConfig()))
	})
}

// TestRegistration holds what hookserver.d may say and how it may say it.
func TestRegistration(t *testing.T) {
	for name, content := range map[string]string{
		"10-a.json": `{"remote-endpoint": "DIR//a.sock", "failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`,
		"xjson":     `{"remote-endpoint": "DIR/a.sock", "runtime-hooks": ["PreRunPodSandbox", "PreRemoveRunPodSandbox", "NoSuchHook"]}`,
		"a.json":    `{"Remote-Endpoint": "DIR/a.sock", "RUNTIME-HOOKS": ["PreRunPodSandbox"], "more": {"to": "come"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(n *node) {
				server := &hookServer{socket: n.path("a.sock")}
				n.must(server.start())
				n.Cleanup(server.stop)
				n.register("nothing.json", `{}`)
				n.register("null.json", `null`)
				n.register(name, strings.ReplaceAll(content, "DIR", n.dir))
				n.start()
				_, err := n.runPod(podConfig())
				n.must(err)
				n.check(want("hooks", len(server.toldOf("PreRunPodSandbox")), 1))
			})
		})
	}
}
