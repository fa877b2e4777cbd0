package cgroupv2_test

import (
	"fmt"
	"strconv"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// memoryQoS is the bundled plugin, for the pod of its test. Its factor is so small that a container
// soon stalls for memory.
var memoryQoS = guest.Plugin{
	Name: "20-memory-qos", Dir: "plugins-wasm/memory-qos", Grant: []string{"update.others", "cgroup.read"},
	Match:  map[string]any{"labels": map[string]string{"memory-qos": "test"}},
	Config: map[string]any{"memoryThrottlingFactor": 0.1, "pressure": map[string]any{}},
}

const mebi = 1 << 20

// testMemoryQoS has a pod whose container main uses more than its memory.high allows. The kernel makes it
// stall, until the plugin raises memory.high. Its container aside requests its limit, which only its
// oom_score_adj tells.
func (l *limited) testMemoryQoS(t *testing.T) {
	n, pod := l.Node, settings.Pod(t)
	pod.Name = "memory-qos"
	pod.Labels = map[string]string{"memory-qos": "test"}
	pod.Annotations = map[string]string{"memory-qos.wasmproxy.io/request.main": strconv.Itoa(16 * mebi)}
	main := &pod.Spec.Containers[0]
	main.Resources, main.ReadinessProbe = memory("16Mi", "96Mi"), nil
	aside := main.DeepCopy()
	aside.Name, aside.Resources = "aside", memory("32Mi", "32Mi")
	// tail keeps all that it reads, because there is no line in it.
	main.Command = []string{"sh", "-c", "{ for i in $(seq 60); do head -c 1000000 /dev/zero; sleep 0.5; done; sleep 100000; } | tail"}
	pod.Spec.Containers = append(pod.Spec.Containers, *aside)

	n.Apply(t, pod)
	ready := n.AwaitReady(t, pod)
	first, second := n.Cgroup(t, guest.ContainerID(t, ready, "main")), n.Cgroup(t, guest.ContainerID(t, ready, "aside"))
	node.Eventually(t, repairTimeout, "the pod has the sum of its containers' memory.low", func() error {
		if low := first.Parent().Read(t, "memory.low")["memory.low"]; low != strconv.Itoa(48*mebi) {
			return fmt.Errorf("memory.low is %s", low)
		}
		return nil
	})
	first.Expect(t, map[string]string{"memory.min": "0", "memory.low": strconv.Itoa(16 * mebi), "memory.max": strconv.Itoa(96 * mebi)})
	second.Expect(t, map[string]string{"memory.min": "0", "memory.low": strconv.Itoa(32 * mebi), "memory.high": "max"})
	node.Eventually(t, 2*repairTimeout, "memory.high of the container that stalls is raised", func() error {
		high, err := strconv.Atoi(first.Read(t, "memory.high")["memory.high"])
		if formula := 24 * mebi; err != nil || high <= formula {
			return fmt.Errorf("memory.high is %d, and %d by the formula (%v); it stalled: %s", high, formula, err, first.Read(t, "memory.pressure")["memory.pressure"])
		}
		return nil
	})

	n.Run(t, "rm /etc/wasmproxy/plugins.d/"+memoryQoS.Name+".wasm")
	node.Eventually(t, repairTimeout, "the removed plugin's values are undone", func() error {
		for _, group := range []guest.Cgroup{first, first.Parent(), second} {
			if v := group.Read(t, "memory.low", "memory.high"); v["memory.low"] != "0" || v["memory.high"] != "max" {
				return fmt.Errorf("%s has %v", group.Path, v)
			}
		}
		return nil
	})
	n.Remove(t, pod)
}

// memory are resources with this request and limit of memory.
func memory(request, limit string) core.ResourceRequirements {
	return core.ResourceRequirements{
		Requests: core.ResourceList{core.ResourceMemory: resource.MustParse(request)},
		Limits:   core.ResourceList{core.ResourceMemory: resource.MustParse(limit)},
	}
}
