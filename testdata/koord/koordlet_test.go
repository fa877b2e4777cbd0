package koord_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// TestKoordlet runs koordlet's own hook server with the hooks that it has on by
// default, which registers itself while the proxy runs. It answers with what it
// was sent, some of it written over; what reaches the runtime must be the same
// through both proxies.
func TestKoordlet(t *testing.T) {
	both(t, func(n *node) {
		n.start()
		n.startKoordlet()
		for _, test := range koordTests() {
			n.Run(test.name, func(t *testing.T) {
				n := *n
				n.T = t
				pod, err := n.runPod(test.pod)
				n.must(err)
				config := with(containerConfig(), func(c *cri.ContainerConfig) { c.Linux.Resources = test.create })
				id, err := n.create(pod, config, test.pod)
				n.must(err)
				got := lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig()
				n.check(wantProto("created", got.GetLinux().GetResources(), test.created))
				n.check(want("variables", len(got.GetEnvs()), len(config.Envs)))
				n.must(n.update(&cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: test.update}))
				n.check(wantProto("updated", lastRequest[*cri.UpdateContainerResourcesRequest](n.runtime).GetLinux(), n.accumulated(test.updated, test.created)))
			})
		}
	})
}

// koordTest is a pod that Koordinator has scheduled, and what the resources of
// its container come to when it is created and updated.
type koordTest struct {
	name            string
	pod             *cri.PodSandboxConfig
	create, created *cri.LinuxContainerResources
	update, updated *cri.LinuxContainerResources
}

func koordTests() []koordTest {
	return []koordTest{{
		// What the pod may use of what others reserve and do not use; kubelet knows
		// nothing of it. Its CPU manager hands out a cpuset, which koordlet takes back.
		name: "batch resources and no cpuset",
		pod: koordPod("BE", "/kubepods/besteffort/poduid-1", "node.koordinator.sh/extended-resource-spec",
			`{"containers": {"main": {"limits": {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "100Mi"}, "requests": {"kubernetes.io/batch-cpu": "250"}}}}`),
		create:  &cri.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 2, OomScoreAdj: 1000, CpusetCpus: "0-1"},
		created: &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 256, MemoryLimitInBytes: 100 << 20, OomScoreAdj: 1000},
		update:  &cri.LinuxContainerResources{CpusetCpus: "0-1"},
		updated: &cri.LinuxContainerResources{}, // all is as it was
	}, {
		name:    "a cpuset and no quota",
		pod:     koordPod("LSR", "/kubepods/poduid-1", "scheduling.koordinator.sh/resource-status", `{"cpuset": "1"}`),
		create:  resources(),
		created: with(resources(), func(r *cri.LinuxContainerResources) { r.CpusetCpus, r.CpuQuota = "1", -1 }),
		update:  &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 70000, CpuShares: 700, CpusetCpus: "0-1"},
		updated: &cri.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: -1, CpuShares: 700, CpusetCpus: "1"},
	}, {
		name:    "nothing",
		pod:     podConfig(),
		create:  resources(),
		created: resources(),
		update:  &cri.LinuxContainerResources{CpuShares: 700},
		updated: &cri.LinuxContainerResources{CpuShares: 700},
	}}
}

// accumulated is what the update of a container comes to: koord-runtime-proxy
// sends all that the container had besides what the update sets.
func (n *node) accumulated(update, had *cri.LinuxContainerResources) *cri.LinuxContainerResources {
	if n.proxy == wasmproxy {
		return update
	}
	return with(had, func(r *cri.LinuxContainerResources) {
		if update.CpuShares != 0 {
			r.CpuShares = update.CpuShares
		}
	})
}

// startKoordlet starts koordlet, and waits until the proxy has heard of it.
func (n *node) startKoordlet() {
	n.Helper()
	p, err := process.Start(n.dir, "koordlet", nil, programs.koordlet, n.path("koordlet.sock"), n.hookDir, n.path("cgroup"))
	n.must(err)
	n.Cleanup(func() {
		if err := p.Stop(); err != nil || n.Failed() {
			n.Logf("koordlet ended with %v; its log ends:\n%s", err, p.LastWords())
		}
	})
	n.eventually("koordlet registers itself", func() error {
		if p.Exited() {
			n.Fatalf("koordlet ended: %s", p.LastWords())
		}
		file, err := os.Stat(filepath.Join(n.hookDir, "koordlet.json"))
		if err == nil && file.Size() == 0 {
			err = errors.New("the file is empty")
		}
		return err
	})
	if n.proxy == wasmproxy {
		n.awaitLog(`"plugins":["koordlet"]`)
		return
	}
	time.Sleep(time.Second) // it says nothing when it has read a file
}

// koordPod is a pod that Koordinator has scheduled.
func koordPod(qos, cgroupParent, annotation, value string) *cri.PodSandboxConfig {
	return with(podConfig(), func(c *cri.PodSandboxConfig) {
		c.Labels["koordinator.sh/qosClass"] = qos
		c.Annotations[annotation] = value
		c.Linux.CgroupParent = cgroupParent
	})
}
