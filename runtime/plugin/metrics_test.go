package plugin_test

import (
	"fmt"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestS01MetricsCarryNoState asks for every answer that there is of a Metrics that is new,
// and of one that took as many names as it may, of every kind: a difference would be a bit
// that a plugin remembers from one pod to the next.
func TestS01MetricsCarryNoState(t *testing.T) {
	used := plugin.NewMetrics()
	for i := range 2 * plugin.MaxSeries {
		used.Update(int32(i%3), fmt.Sprintf("m_%d", i), 1)
	}
	asked := 0
	for _, name := range []string{"m_0", "m_1", "m_2", "m_127", "other", `m_0{a="b"}`, "", "9", "m_0 "} {
		for kind := int32(-1); kind <= 3; kind++ {
			for _, v := range []int64{-1, 0, 1} {
				fresh := plugin.NewMetrics().Update(kind, name, v)
				if got := used.Update(kind, name, v); got != fresh {
					t.Errorf("kind %d, name %q, value %d: %v, of a plugin that counted nothing yet %v", kind, name, v, got, fresh)
				}
				asked++
			}
		}
	}
	if asked != 9*5*3 || len(used.All()) != plugin.MaxSeries {
		t.Errorf("asked %d times, with %d names", asked, len(used.All()))
	}
}

// TestMetricsDropped counts what has no place.
func TestMetricsDropped(t *testing.T) {
	m := plugin.NewMetrics()
	for i := range plugin.MaxSeries + 3 {
		if errno := m.Update(abi.MetricAdd, fmt.Sprintf("m_%d", i), 1); errno != abi.OK {
			t.Fatal(errno)
		}
	}
	if errno := m.Update(abi.MetricSet, "m_0", 7); errno != abi.OK {
		t.Fatal(errno)
	}
	if all := m.All(); m.Dropped() != 4 || all[0].Name != "m_0" || all[0].Value != 1 {
		t.Errorf("dropped %d, the first is %+v", m.Dropped(), all[0])
	}
}
