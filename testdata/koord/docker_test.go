package koord_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestDockerMode are the faults of koord-runtime-proxy in Docker mode, with their numbers where CRI mode
// has the same. wasmproxy must not have them.
func TestDockerMode(t *testing.T) {
	const noName = "Failed to split k8s container name"
	tests(t, map[string]scenario{
		"W1 bad file": {incumbent: "EOF", run: func(n *node) error {
			d := n.onDocker()
			good := n.serve("20-good.json", nil, "Ignore", "PreRunPodSandbox")
			n.register("10-bad.json", "")
			n.start()
			const pods = 30 // koord-runtime-proxy asks one of the two, whichever its map has first
			for range pods {
				if _, err := d.create(sandboxName, sandboxBody); err != nil {
					return err
				}
			}
			return want("pods that the good server was told of", len(good.toldOf("PreRunPodSandbox")), pods)
		}},
		"W2 container of an unknown pod": {incumbent: "500 .*Failed to get pod info", run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", nil, "Ignore", "PreCreateContainer")
			n.start()
			_, err := d.create(containerName, containerBody(strings.Repeat("f", 64)))
			return err
		}},
		"container that Kubernetes did not make": {incumbent: noName, run: func(n *node) error {
			d := n.onDocker()
			server := n.serve("10-a.json", nil, "Fail", allHooks...)
			n.start()
			body := `{"Image":"busybox","HostConfig":{"Future":1.50}}`
			id, err := d.create("db", body)
			if err != nil {
				return err
			}
			err = join(d.do(id, "start"), d.update(id, `{"CpuShares":2.0e2}`), d.do(id, "stop"))
			n.settle()
			for _, hook := range allHooks {
				err = join(err, want(hook, len(server.toldOf(hook)), 0))
			}
			return join(err, sameBody(d.engine.body("/containers/create"), body), sameBody(d.engine.body("update"), `{"CpuShares":2.0e2}`))
		}},
		"name that was taken": {incumbent: noName, run: func(n *node) error {
			d := n.onDocker()
			server := n.serve("10-a.json", nil, "Fail", "PreRunPodSandbox")
			n.start()
			_, err := d.create(sandboxName+"_6f7ba9d2", sandboxBody) // which dockershim then appends
			return join(err, want("pod_meta.uid", lastTold[*podRequest](server, "PreRunPodSandbox").GetPodMeta().GetUid(), "uid-1"))
		}},
		"stop of a container that is gone": {incumbent: "500 .*No such container", run: func(n *node) error {
			d := n.onDocker()
			n.start()
			err := d.do(strings.Repeat("f", 64), "stop")
			if err == nil || !strings.HasPrefix(err.Error(), "404") {
				return wrong("want Docker's own answer: %v", err)
			}
			return nil
		}},
		"W5 failed stop": {incumbent: "second stop: 500 .*No such container", run: func(n *node) error {
			d := n.onDocker()
			server := n.serve("10-a.json", nil, "Ignore", "PostStopContainer")
			n.start()
			_, container := d.running()
			d.engine.fail("stop")
			if err := d.do(container, "stop"); err == nil {
				n.Fatal("Docker did not fail")
			}
			n.settle()
			before := len(server.toldOf("PostStopContainer"))
			d.engine.fail("")
			if err := d.do(container, "stop"); err != nil {
				return wrong("second stop: %v", err)
			}
			return n.settled(func() error {
				return want("PostStopContainer after the second stop", len(server.toldOf("PostStopContainer"))-before, 1)
			})
		}},
		"W7 Docker starts later": {incumbent: "panic: Failed to backup container info", run: func(n *node) error {
			d := n.onDocker()
			n.startProxy()
			n.settle()
			for end := time.Now().Add(patience); n.proxy == koordRuntimeProxy && n.sick() == nil && time.Now().Before(end); { // a busy machine takes longer
				n.settle()
			}
			if err := n.sick(); err != nil {
				return err
			}
			n.must(d.engine.start())
			n.awaitServing()
			return nil
		}},
		"W8 restart": {incumbent: `pod_meta.name: got /k8s_POD`, run: func(n *node) error {
			d := n.onDocker()
			server := n.serve("10-a.json", nil, "Ignore", "PreUpdateContainerResources")
			n.start()
			_, container := d.running()
			n.kill()
			n.startProxy()
			n.awaitServing()
			d.must(d.update(container, `{"CpuShares":256}`))
			told := lastTold[*containerRequest](server, "PreUpdateContainerResources")
			resources := with(hookResources(), func(r *hookResourcesMessage) { r.CpuShares, r.HugepageLimits, r.Unified = 256, nil, nil })
			return join(
				want("pod_meta.name", told.GetPodMeta().GetName(), "web"),
				want("pod_meta.uid", told.GetPodMeta().GetUid(), "uid-1"),
				want("container_meta.name", told.GetContainerMeta().GetName(), "main"),
				wantProto("container_resources", told.GetContainerResources(), resources),
				want("container_envs", told.GetContainerEnvs(), map[string]string{"GREETING": "hello", "PORT": "80", "EMPTY": ""}),
				want("pod_cgroup_parent", told.GetPodCgroupParent(), "/kubepods/burstable/poduid-1"),
			)
		}},
		"W10 cgroup parent that was not named": {incumbent: "cgroup parent at Docker", run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", nil, "Fail", "PreRunPodSandbox")
			n.start()
			_, err := d.create(sandboxName, sandboxBody)
			n.must(err)
			if body := d.engine.body("/containers/create"); !strings.Contains(body, `"CgroupParent":"/kubepods/burstable/poduid-1"`) {
				return wrong("cgroup parent at Docker: %s", body)
			}
			return nil
		}},
		"W10 order of the environment": {incumbent: "environment at Docker", run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", echoing, "Fail", "PreCreateContainer")
			n.start()
			sandbox, err := d.create(sandboxName, sandboxBody)
			n.must(err)
			var names []string
			for i := range 40 {
				names = append(names, quoted("NAME"+strconv.Itoa((i*17)%40)+"="))
			}
			env := `"Env":[` + strings.Join(slices.Insert(names, 3, quoted("ALONE")), ",") + `]`
			_, err = d.create(containerName, strings.Replace(containerBody(sandbox), `"Env":["GREETING=hello","PORT=80","EMPTY="]`, env, 1))
			n.must(err)
			if body := d.engine.body("/containers/create"); !strings.Contains(body, env) {
				return wrong("environment at Docker: %s", body)
			}
			return nil
		}},
		"W14 hung hook": {incumbent: "kubelet gave up", run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", hanging("PreRunPodSandbox"), "Ignore", "PreRunPodSandbox")
			n.start()
			return n.timely(func() error { _, err := d.create(sandboxName, sandboxBody); return err })
		}},
		"W16 post hook after a failure": {incumbent: "hooks of a container that did not start: got 1, want 0", run: func(n *node) error {
			d := n.onDocker()
			server := n.serve("10-a.json", nil, "Ignore", "PostStartContainer")
			n.start()
			_, container := d.running()
			n.eventually("the hook of the first start", func() error { return want("hooks", len(server.toldOf("PostStartContainer")), 1) })
			d.engine.fail("start")
			if err := d.do(container, "start"); err == nil {
				n.Fatal("Docker did not fail")
			}
			n.settle()
			return want("hooks of a container that did not start", len(server.toldOf("PostStartContainer"))-1, 0)
		}},
		"W16 error of a hook with policy Fail": {incumbent: "not Docker's form of an error", run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", refusing(status.Error(codes.Internal, "no such device")), "Fail", "PreRunPodSandbox")
			n.start()
			_, err := d.create(sandboxName, sandboxBody)
			if err == nil || len(d.engine.bodies("/containers/create")) != 0 {
				return wrong("Docker was asked for a pod that was refused: %v", err)
			}
			if !strings.Contains(err.Error(), `{"message":"`) || !strings.Contains(err.Error(), "no such device") {
				return wrong("not Docker's form of an error: %v", err)
			}
			return nil
		}},
	})
}

// TestDockerSecrets has a password in a container's environment, and looks for it in the log, in which
// wasmproxy says all that it can.
func TestDockerSecrets(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	n := newNode(t, wasmproxy)
	n.flags = []string{"--log-level=debug"}
	d := n.onDocker()
	server := n.serve("10-a.json", echoing, "Fail", allHooks...)
	n.start()
	sandbox, err := d.create(sandboxName, sandboxBody)
	n.must(err)
	container, err := d.create(containerName, strings.Replace(containerBody(sandbox), "EMPTY=", "PASSWORD="+secret, 1))
	n.must(err)
	n.must(d.do(container, "start"))
	n.must(want("the server is told", lastTold[*containerRequest](server, "PreCreateContainer").GetContainerEnvs()["PASSWORD"], secret))
	if strings.Contains(n.log(), secret) {
		t.Error("the log has the password")
	}
}

func quoted(text string) string { return `"` + text + `"` }
