package metrics_test

import (
	"fmt"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// own is a plugin's own metrics after these updates.
func own(t *testing.T, updates ...any) *plugin.Metrics {
	t.Helper()
	m := plugin.NewMetrics()
	for i := 0; i < len(updates); i += 3 {
		if e := m.Update(int32(updates[i].(int)), updates[i+1].(string), int64(updates[i+2].(int))); e != abi.OK {
			t.Fatalf("%v: %v", updates[i+1], e)
		}
	}
	return m
}

// owning is a Metrics of plugins with these metrics of their own, by id in order.
func owning(all ...any) *metrics.Metrics {
	return metrics.New("v1", func() (*status.Status, map[string]*plugin.Metrics) {
		s, own := &status.Status{}, map[string]*plugin.Metrics{}
		for i := 0; i < len(all); i += 2 {
			id := all[i].(string)
			s.Plugins.Plugins = append(s.Plugins.Plugins, status.Plugin{ID: id, State: status.Active})
			own[id] = all[i+1].(*plugin.Metrics)
		}
		return s, own
	})
}

const (
	add    = abi.MetricAdd
	set    = abi.MetricSet
	sample = abi.MetricObserve
)

// A plugin's own metrics are a counter, a gauge and a histogram, with the plugin as a label.
func TestOwnMetrics(t *testing.T) {
	all := scraped(t, owning("50-qos", own(t,
		add, `throttled_total{qos="Burstable"}`, 3, add, `throttled_total{qos="Guaranteed"}`, 1, add, "seen", 2,
		set, "queue", -4, sample, "wait_us", 0, sample, "wait_us", 1, sample, "wait_us", 700, sample, "wait_us", 1<<50)))
	for _, want := range []struct {
		family, labels string
		of             dto.MetricType
		value          float64
	}{
		{"wasmproxy_own_throttled_total", `plugin="50-qos",qos="Burstable"`, dto.MetricType_COUNTER, 3},
		{"wasmproxy_own_throttled_total", `plugin="50-qos",qos="Guaranteed"`, dto.MetricType_COUNTER, 1},
		{"wasmproxy_own_seen_total", `plugin="50-qos"`, dto.MetricType_COUNTER, 2},
		{"wasmproxy_own_queue", `plugin="50-qos"`, dto.MetricType_GAUGE, -4},
	} {
		got := series(all[want.family], want.labels)
		if all[want.family].GetType() != want.of || got.GetCounter().GetValue()+got.GetGauge().GetValue() != want.value {
			t.Errorf("%s{%s} is %v %v, want %v", want.family, want.labels, all[want.family].GetType(), got, want.value)
		}
	}
	h := series(all["wasmproxy_own_wait_us"], `plugin="50-qos"`).GetHistogram()
	if h.GetSampleCount() != 4 || h.GetSampleSum() != 701+1<<50 {
		t.Errorf("the histogram is %v", h)
	}
	counts := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if counts[0] != 1 || counts[1] != 2 || counts[511] != 2 || counts[1023] != 3 || counts[1<<40-1] != 3 {
		t.Errorf("the buckets are %v", counts)
	}
}

// Names that clash, in one plugin or between two, cost their own series alone.
func TestOwnMetricsThatClash(t *testing.T) {
	m := owning(
		"10-first", own(t, add, "jobs_total", 1, sample, "latency", 1, set, `value{plugin="x",le="1",__name__="up"}`, 7),
		"20-second", own(t, set, "jobs", 2, add, "latency_count", 3, add, "jobs_sum", 4, add, `jobs_total{b="1",a="2"}`, 5, add, `jobs_total{a="2",b="1"}`, 6,
			set, `value{a="1",a="2"}`, 8, set, "_total", 9, set, `utf{a="`+"\xff"+`"}`, 1))
	all := scraped(t, m)
	for _, want := range []struct {
		family, labels string
		value          float64
	}{
		{"wasmproxy_own_jobs_total", `plugin="10-first"`, 1},
		{"wasmproxy_own_jobs_total", `plugin="20-second"`, 4},
		{"wasmproxy_own_value", `exported___name__="up",exported_le="1",exported_plugin="x",plugin="10-first"`, 7},
		{"wasmproxy_own__total", `plugin="20-second"`, 9},
		{"wasmproxy_own_utf", `a="�",plugin="20-second"`, 1},
		{"wasmproxy_plugin_own_series_dropped", `plugin="10-first"`, 0},
		{"wasmproxy_plugin_own_series_dropped", `plugin="20-second"`, 4},
	} {
		got := series(all[want.family], strings.ReplaceAll(want.labels, `\ufffd`, "\ufffd"))
		if got == nil || got.GetCounter().GetValue()+got.GetGauge().GetValue() != want.value {
			t.Errorf("%s{%s} is %v, want %v; the family has %v", want.family, want.labels, got, want.value, all[want.family].GetMetric())
		}
	}
	if all["wasmproxy_own_latency"].GetType() != dto.MetricType_HISTOGRAM || len(all["wasmproxy_own_latency"].GetMetric()) != 1 {
		t.Errorf("latency is %v", all["wasmproxy_own_latency"])
	}
}

// A plugin has as many series as package plugin lets it, whatever names it makes up.
func TestPluginsMakeBoundedSeries(t *testing.T) {
	hostile := plugin.NewMetrics()
	for i := range 1000 {
		for kind := range int32(3) {
			hostile.Update(kind, fmt.Sprintf(`m%d{pod="%d"}`, i, i), int64(i))
		}
	}
	all := scraped(t, owning("66-hostile", hostile))
	n := 0
	for name, f := range all {
		if strings.HasPrefix(name, metrics.OwnPrefix) {
			n += len(f.GetMetric())
		}
	}
	if n == 0 || n > plugin.MaxSeries {
		t.Errorf("%d series of its own, want some and at most %d", n, plugin.MaxSeries)
	}
}
