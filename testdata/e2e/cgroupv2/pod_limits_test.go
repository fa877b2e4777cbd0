package cgroupv2_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// The tutorial's plugin doubles the CPU quota of a container. It is there twice: with the grant that
// it needs for that, for one pod, and without it, for another.
var (
	boostGranted = boost("30-cpu-boost", "granted", "pod.limits")
	boostDenied  = boost("31-cpu-boost", "denied")
)

func boost(name, pod string, grant ...string) guest.Plugin {
	return guest.Plugin{Name: name, Grant: grant, Match: map[string]any{"labels": map[string]string{"boost": pod}}}
}

// testPodLimits has two pods whose containers use all CPU that they get: 20 ms in 100 ms by kubelet's
// quota. Twice that is what the kernel gives the one whose plugin has the grant.
func (l *limited) testPodLimits(t *testing.T) {
	var pods []*core.Pod
	groups := map[string]guest.Cgroup{}
	for _, name := range []string{"granted", "denied"} {
		pod := busy(t, name)
		pods = append(pods, pod)
		l.Apply(t, pod)
	}
	for _, pod := range pods {
		groups[pod.Name] = l.Cgroup(t, guest.ContainerID(t, l.AwaitReady(t, pod), "main"))
	}
	for name, want := range map[string][2]string{"granted": {"40000 100000", "max 100000"}, "denied": {"20000 100000", "20000 100000"}} {
		groups[name].Expect(t, map[string]string{"cpu.max": want[0]})
		groups[name].Parent().Expect(t, map[string]string{"cpu.max": want[1]})
	}
	node.Eventually(t, repairTimeout, "the kernel gives one container twice as much as the other", func() error {
		granted, denied := l.perPeriod(t, groups["granted"]), l.perPeriod(t, groups["denied"])
		t.Logf("in a period of 100 ms the containers use %d and %d µs", granted, denied)
		if granted < 32_000 || denied > 24_000 {
			return fmt.Errorf("in a period they use %d and %d µs, want 40000 and 20000", granted, denied)
		}
		return nil
	})
	log := l.Run(t, "journalctl --output=cat --unit=wasmproxy --grep='cpu.max .*40000 100000.* would be above .*20000 100000'")
	if !strings.Contains(log, boostDenied.Name) {
		t.Errorf("the log does not say why %s had no effect: %s", boostDenied.Name, log)
	}

	l.Run(t, "rm /etc/wasmproxy/plugins.d/"+boostGranted.Name+".* /etc/wasmproxy/plugins.d/"+boostDenied.Name+".*")
	node.Eventually(t, repairTimeout, "the removed plugin's quota is undone", func() error {
		for _, group := range []guest.Cgroup{groups["granted"], groups["granted"].Parent()} {
			if limit := group.Read(t, "cpu.max")["cpu.max"]; limit != "20000 100000" {
				return fmt.Errorf("cpu.max of %s is %s", group.Path, limit)
			}
		}
		return nil
	})
	for _, pod := range pods {
		l.Remove(t, pod)
	}
}

// busy is a pod for the plugin of this name, whose container uses all CPU that it gets.
func busy(t *testing.T, name string) *core.Pod {
	pod := settings.Pod(t)
	pod.Name = name
	pod.Labels, pod.Annotations = map[string]string{"boost": name}, map[string]string{"example.com/boost": "2x"}
	main := &pod.Spec.Containers[0]
	main.ReadinessProbe = nil
	main.Command = []string{"sh", "-c", "trap 'exit 0' TERM; while :; do :; done"}
	main.Resources.Limits[core.ResourceCPU] = resource.MustParse("200m")
	return pod
}

// perPeriod returns how many µs of CPU a group uses in one of its periods, over some seconds.
func (l *limited) perPeriod(t *testing.T, group guest.Cgroup) int {
	t.Helper()
	stat := group.Dir() + "/cpu.stat"
	var usage, periods []int
	for line := range strings.Lines(l.Run(t, "cat "+stat+" && sleep 4 && cat "+stat)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			t.Fatalf("reading %s: %q: %v", stat, line, err)
		case name == "usage_usec":
			usage = append(usage, n)
		case name == "nr_periods":
			periods = append(periods, n)
		}
	}
	if len(usage) != 2 || len(periods) != 2 || periods[0] == periods[1] {
		t.Fatalf("%s has usage %v in %v periods", stat, usage, periods)
	}
	return (usage[1] - usage[0]) / (periods[1] - periods[0])
}
