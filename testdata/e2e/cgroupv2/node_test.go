// Package cgroupv2_test is `make e2e-v2`: a real kubelet with the systemd driver, or the
// cgroupfs driver, runs pods through wasmproxy on a kernel with cgroup v2 alone, in a virtual
// machine.
package cgroupv2_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// setter sets what a pod's annotations ask for.
var setter = guest.Plugin{Name: "10-setter", Dir: "testdata/plugins/setter", Grant: []string{"pod.limits"}}

// limited is a node with the pods whose cgroup files the plugin sets.
type limited struct {
	*guest.Node
	builder  *artifact.Builder
	settings []settings.Setting
	pods     []*core.Pod
	ids      map[object]string       // of containers
	groups   map[object]guest.Cgroup // of pods and containers
}

// object is a pod, by the name pod, or a container of it.
type object struct{ pod, name string }

// TestNode boots one guest for all, because that takes the longest. Its parts build
// on each other, so the first that fails ends it. It logs what the basic ones take.
func TestNode(t *testing.T) {
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &limited{Node: guest.StartNode(t, builder, setter, memoryQoS, boostGranted, boostDenied), builder: builder, ids: map[object]string{}, groups: map[object]guest.Cgroup{}}
	took := time.Since(l.Started)
	for _, part := range parts {
		start := time.Now()
		if !t.Run(part.name, func(t *testing.T) { part.test(l, t) }) {
			return
		}
		if part.basic {
			took += time.Since(start)
		}
	}
	t.Logf("the start of the node, boot, pods, update, daemon-reload and kill took %.0f s", took.Seconds())
}

// parts are those of TestNode. The basic ones are to take ten minutes at most on two idle CPUs.
var parts = []struct {
	name  string
	test  func(*limited, *testing.T)
	basic bool
}{
	{"boot", (*limited).testBoot, true},
	{"service", (*limited).testService, false},
	{"restart", (*limited).testRestart, false},
	{"pods", (*limited).testPods, true},
	{"update", (*limited).testUpdate, true},
	{"daemon-reload", (*limited).testDaemonReload, true},
	{"kill", (*limited).testKill, true},
	{"foreign write", (*limited).testForeignWrite, false},
	{"memory-qos", (*limited).testMemoryQoS, false},
	{"pod.limits", (*limited).testPodLimits, false},
	{"undo", (*limited).testUndo, false},
	{"uninstall", (*limited).testUninstall, false},
	{"removal", (*limited).testRemoval, false},
	{"systemd", (*limited).testSystemd, false},
}

// testBoot makes sure that the guest is the node that it is meant to be.
func (l *limited) testBoot(t *testing.T) {
	for command, want := range map[string]string{
		"stat --file-system --format=%T /sys/fs/cgroup": "cgroup2fs",
		"cat /proc/1/comm": "systemd",
		"systemctl is-active wasmproxy containerd dbus": "active\nactive\nactive",
	} {
		if got := l.Run(t, command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
	config, err := l.CRI(t, guest.ProxySocket).RuntimeConfig(t.Context(), &cri.RuntimeConfigRequest{})
	if driver := config.GetLinux().GetCgroupDriver(); err != nil || driver != guest.Driver() {
		t.Errorf("the runtime's cgroup driver is %v, want %v (%v)", driver, guest.Driver(), err)
	}
}

// testPods waits for the pods with their exec probes, which kubelet has run through
// wasmproxy, and makes sure that the plugin's values are in the kernel.
func (l *limited) testPods(t *testing.T) {
	l.Run(t, "modprobe bfq") // it has io.bfq.weight
	l.settings = settings.V2(l.Run(t, "cat /sys/block/vda/dev"))
	l.pods = settings.Pods(t, l.settings)
	for _, pod := range l.pods {
		l.Apply(t, pod)
	}
	for _, pod := range l.pods {
		ready := l.AwaitReady(t, pod)
		if ready.Status.QOSClass != core.PodQOSBurstable || ready.Status.Phase != core.PodRunning {
			t.Errorf("pod %s is %s and %s, want Burstable and Running", pod.Name, ready.Status.QOSClass, ready.Status.Phase)
		}
		for _, c := range pod.Spec.Containers {
			o := object{pod.Name, c.Name}
			l.ids[o] = guest.ContainerID(t, ready, c.Name)
			l.groups[o] = l.Cgroup(t, l.ids[o])
			l.groups[object{pod.Name, "pod"}] = l.groups[o].Parent()
		}
	}
	l.groups[object{"fields", "pod"}].Expect(t, map[string]string{"cpu.max": "50000 100000", "memory.max": "67108864"})
	l.expect(t, l.settings, settings.Setting.Expected)
}

// testUpdate updates the containers as kubelet does when it resizes a pod: what the
// plugin does not ask for is as the update says, and all else is the plugin's.
func (l *limited) testUpdate(t *testing.T) {
	client := l.CRI(t, guest.ProxySocket)
	for _, update := range []*cri.LinuxContainerResources{
		{CpuPeriod: 100000, CpuQuota: 40000, CpuShares: 512, MemoryLimitInBytes: 60 << 20, CpusetCpus: "1"},
		{CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 102, MemoryLimitInBytes: 64 << 20, CpusetCpus: "0-1"},
	} {
		for _, pod := range l.pods {
			o := object{pod.Name, "main"}
			// As kubelet does, it tries again: the shim of an emulated node may need more time than containerd gives it.
			node.Eventually(t, repairTimeout, "the runtime updates "+pod.Name, func() error {
				_, err := client.UpdateContainerResources(t.Context(), &cri.UpdateContainerResourcesRequest{ContainerId: l.ids[o], Linux: update})
				return err
			})
		}
		l.groups[object{"fields", "main"}].Expect(t, map[string]string{"cpuset.cpus": update.CpusetCpus})
		l.expect(t, l.settings, settings.Setting.Expected)
	}
}

// testDaemonReload makes systemd apply the properties of all units again. What it knows
// stays, and wasmproxy repairs the rest, because of the reload: a scan, which may come first, knows of
// none.
func (l *limited) testDaemonReload(t *testing.T) {
	since := l.Run(t, "date +%s")
	burst := settings.Only(l.settings, func(s settings.Setting) bool { return s.Target == "main.file.cpu.max.burst" })
	node.Eventually(t, 3*repairTimeout, "a reload of systemd has a file repaired", func() error {
		l.overwrite(t, burst)
		l.Run(t, "systemctl daemon-reload")
		l.await(t, l.settings, settings.Setting.Expected)
		log := l.Run(t, "journalctl --output=cat --unit=wasmproxy --since=@"+since+" --grep='cgroup file repaired'; true")
		for line := range strings.Lines(log) {
			if strings.Contains(line, `"file":"cpu.max.burst"`) && strings.Contains(line, `"last":"a reload of systemd"`) {
				return nil
			}
		}
		return fmt.Errorf("the log of repairs is %q", log)
	})
}

// testKill kills wasmproxy. The pods keep their values and their containers, and the next
// wasmproxy goes on where the last one ended.
func (l *limited) testKill(t *testing.T) {
	l.KillProxy(t)
	l.await(t, l.settings, settings.Setting.Expected) // it looks at all values once it has read the pods
	l.testUpdate(t)
	for _, pod := range l.pods {
		if now, before := guest.ContainerID(t, l.AwaitReady(t, pod), "main"), l.ids[object{pod.Name, "main"}]; now != before {
			t.Errorf("the container of pod %s is %s, and was %s before wasmproxy was killed", pod.Name, now, before)
		}
	}
}

// testForeignWrite overwrites every file that the plugin sets itself, which wasmproxy finds out.
func (l *limited) testForeignWrite(t *testing.T) {
	l.overwrite(t, settings.Only(l.settings, settings.Setting.OfFile))
	l.await(t, l.settings, settings.Setting.Expected)
}

// testUndo removes the last plugin. Files and fields are as kubelet and the runtime had them.
func (l *limited) testUndo(t *testing.T) {
	l.Run(t, "rm /etc/wasmproxy/plugins.d/"+setter.Name+".*")
	l.await(t, settings.Only(l.settings, settings.Setting.Undone), settings.Setting.Original)
}

// testRemoval takes the pods away. Their cgroups go with them.
func (l *limited) testRemoval(t *testing.T) {
	for _, pod := range l.pods {
		l.Remove(t, pod)
	}
	for _, pod := range l.pods {
		l.Await(t, "test ! -e "+l.groups[object{pod.Name, "pod"}].Dir())
	}
}
