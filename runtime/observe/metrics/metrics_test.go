package metrics_test

import (
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// scraped returns the families that a scrape gets, by name.
func scraped(t *testing.T, m *metrics.Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// series returns a series of a family by its labels, such as plugin="a",hook="b".
func series(f *dto.MetricFamily, labels string) *dto.Metric {
	for _, m := range f.GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
		if strings.Join(have, ",") == labels {
			return m
		}
	}
	return nil
}

func none() (*status.Status, map[string]*plugin.Metrics) { return &status.Status{}, nil }

// with is the levels of these plugins, all active.
func with(ids ...string) metrics.Levels {
	return func() (*status.Status, map[string]*plugin.Metrics) {
		s, own := &status.Status{Plugins: status.Plugins{Plugins: []status.Plugin{}}}, map[string]*plugin.Metrics{}
		for _, id := range ids {
			s.Plugins.Plugins = append(s.Plugins.Plugins, status.Plugin{ID: id, State: status.Active})
			own[id] = plugin.NewMetrics()
		}
		return s, own
	}
}

func called(id string, h abi.Hook, o observe.Outcome, d time.Duration) *observe.HookCalled {
	return &observe.HookCalled{Plugin: id, Hook: h, Outcome: o, Duration: d, Fuel: 10, HostCalls: 2, Changes: 1}
}

const createContainer = "/runtime.v1.RuntimeService/CreateContainer"

// Calls are counted by method, route and code, with their time and that of the backend.
func TestCallsAreCounted(t *testing.T) {
	m := metrics.New("v1", none)
	for _, e := range []*observe.CallFinished{
		{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: 30 * time.Millisecond, Backend: 20 * time.Millisecond},
		{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: 3 * time.Second, Backend: 2 * time.Second},
		{Method: createContainer, Code: "FailedPrecondition", Route: observe.Hooked, Duration: time.Millisecond},
		{Method: "/runtime.v1.RuntimeService/GetContainerEvents", Code: "Unavailable", Route: observe.Passed, Duration: time.Hour, Backend: time.Hour},
	} {
		m.Observe(t.Context(), e)
	}
	all := scraped(t, m)
	for labels, want := range map[string]float64{
		`code="OK",method="CreateContainer",route="hooked"`:                 2,
		`code="FailedPrecondition",method="CreateContainer",route="hooked"`: 1,
		`code="Unavailable",method="GetContainerEvents",route="passed"`:     1,
	} {
		if got := series(all["wasmproxy_calls_total"], labels).GetCounter().GetValue(); got != want {
			t.Errorf("%s: %v, want %v", labels, got, want)
		}
	}
	for name, want := range map[string]float64{"wasmproxy_call_seconds_total": 3.031, "wasmproxy_backend_seconds_total": 2.02} {
		if got := series(all[name], `method="CreateContainer"`).GetCounter().GetValue(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
		if series(all[name], `method="GetContainerEvents"`) != nil {
			t.Errorf("%s has a stream, whose time is that of its caller", name)
		}
	}
	if h := series(all["wasmproxy_call_overhead_seconds"], "").GetHistogram(); h.GetSampleCount() != 3 || math.Abs(h.GetSampleSum()-1.011) > 1e-9 {
		t.Errorf("seconds in the proxy are %v", h)
	}
	if n := m.Succeeded(createContainer); n != 2 {
		t.Errorf("%d containers were created, want 2", n)
	}
	if got := m.Calls(); got["CreateContainer"] != 3 || got["GetContainerEvents"] != 1 {
		t.Errorf("Calls are %v", got)
	}
}

// Whatever a client calls, and whatever a backend answers, there are no more series.
func TestClientsMakeNoSeries(t *testing.T) {
	m := metrics.New("v1", none)
	for i := range 1000 {
		m.Observe(t.Context(), &observe.CallFinished{Method: fmt.Sprintf("/made.up/%d\xff", i), Code: fmt.Sprintf("Code(%d)", i), Route: observe.Passed})
	}
	f := scraped(t, m)["wasmproxy_calls_total"]
	if len(f.GetMetric()) != 1 || series(f, `code="other",method="other",route="passed"`).GetCounter().GetValue() != 1000 {
		t.Errorf("series: %v", f)
	}
}

// A plugin is named after a file, whose name may be any bytes. Its failures are counted like the rest.
func TestFailuresOfAnyFileName(t *testing.T) {
	m := metrics.New("v1", with("10-\xff"))
	failed := called("10-\xff", abi.PreRunPodSandbox, observe.Failed, time.Millisecond)
	failed.Class, failed.Err = observe.ClassFuel, fmt.Errorf("no more fuel")
	m.Observe(t.Context(), failed)
	f := scraped(t, m)["wasmproxy_plugin_failures_total"]
	if s := series(f, "class=\"fuel\",hook=\"PreRunPodSandbox\",plugin=\"10-\uFFFD\""); s.GetCounter().GetValue() != 1 {
		t.Errorf("series: %v", f)
	}
}

// Hooks are counted by plugin, hook and outcome; failures by class; totals over all.
func TestHooksAreCounted(t *testing.T) {
	m := metrics.New("v1", with("10-a", "20-b"))
	for range 98 {
		m.Observe(t.Context(), called("10-a", abi.PreCreateContainer, observe.OK, 20*time.Microsecond))
	}
	m.Observe(t.Context(), called("10-a", abi.PreRunPodSandbox, observe.Rejected, 400*time.Millisecond))
	failed := called("10-a", abi.PreRunPodSandbox, observe.Failed, 400*time.Millisecond)
	failed.Class, failed.Err = observe.ClassFuel, fmt.Errorf("no more fuel")
	m.Observe(t.Context(), failed)
	m.Observe(t.Context(), &observe.HookCalled{Plugin: "20-b", Hook: abi.PreCreateContainer, Outcome: observe.NotCalled})
	m.Observe(t.Context(), &observe.FunctionCalled{Plugin: "20-b", Fuel: 7, HostCalls: 1})
	all := scraped(t, m)
	for _, want := range []struct {
		family, labels string
		value          float64
	}{
		{"wasmproxy_plugin_calls_total", `outcome="ok",plugin="10-a"`, 98},
		{"wasmproxy_plugin_calls_total", `outcome="rejected",plugin="10-a"`, 1},
		{"wasmproxy_plugin_calls_total", `outcome="failed",plugin="10-a"`, 1},
		{"wasmproxy_plugin_calls_total", `outcome="not_called",plugin="20-b"`, 1},
		{"wasmproxy_hook_calls_total", `hook="PreCreateContainer",plugin="10-a"`, 98},
		{"wasmproxy_hook_calls_total", `hook="PreRunPodSandbox",plugin="10-a"`, 2},
		{"wasmproxy_plugin_failures_total", `class="fuel",hook="PreRunPodSandbox",plugin="10-a"`, 1},
		{"wasmproxy_plugin_fuel_total", `plugin="10-a"`, 1000},
		{"wasmproxy_plugin_fuel_total", `plugin="20-b"`, 7},
		{"wasmproxy_plugin_host_calls_total", `plugin="10-a"`, 200},
		{"wasmproxy_plugin_changes_total", `plugin="10-a"`, 100},
	} {
		if got := series(all[want.family], want.labels).GetCounter().GetValue(); got != want.value {
			t.Errorf("%s{%s} is %v, want %v", want.family, want.labels, got, want.value)
		}
	}
	if h := series(all["wasmproxy_hook_duration_seconds"], `phase="pre",plugin="20-b"`).GetHistogram(); h.GetSampleCount() != 0 {
		t.Errorf("a plugin that was not called took %v", h)
	}
	calls, failures := m.HookCalls()
	if calls["PreCreateContainer"] != 99 || calls["PreRunPodSandbox"] != 2 || failures["PreCreateContainer"] != 1 || failures["PreRunPodSandbox"] != 1 || len(failures) != 2 {
		t.Errorf("by hook: %v, %v", calls, failures)
	}
	got := m.Plugin("10-a")
	if got.Calls != 100 || got.Failures != 1 || got.Refusable != 100 || got.Rejections != 1 || got.P50 > 1e-4 || got.P99 < 0.25 || got.P99 > 1 {
		t.Errorf("10-a: %+v", got)
	}
	if last := got.LastError; last == nil || last.Error != failed.Err.Error() || last.Hook != "PreRunPodSandbox" || last.Class != "fuel" {
		t.Errorf("its last failure is %+v", last)
	}
	for _, e := range []observe.Event{
		&observe.Conflict{Plugin: "10-a"}, &observe.CgroupFileFought{Plugin: "10-a"}, &observe.CgroupFileFought{Plugin: "10-a"},
		&observe.CgroupFileFailed{Plugin: "10-a"}, &observe.CgroupFileFailed{Plugin: "10-a"}, &observe.CgroupFileFailed{Plugin: "10-a"},
		called("10-a", abi.Tick, observe.OK, 0), called("10-a", abi.PostStopContainer, observe.OK, 0), called("10-a", abi.PreStopContainer, observe.OK, 0),
	} {
		m.Observe(t.Context(), e)
	}
	if got := m.Plugin("10-a"); got.Calls != 103 || got.Refusable != 100 {
		t.Errorf("with hooks that cannot refuse 10-a is %+v", got)
	}
	if got := m.Plugin("10-a"); got.Conflicts != 1 || got.Fights != 2 || got.WriteFailures != 3 {
		t.Errorf("10-a: %+v", got)
	}
	if got := m.Plugin("20-b"); got.Calls != 1 || got.Failures != 1 || got.P50 != 0 || got.LastError != nil {
		t.Errorf("20-b: %+v", got)
	}
}

// A counter that an alert waits for is there before it counts: Prometheus sees no increase of a
// series that begins with 1.
func TestCountersBeginAtZero(t *testing.T) {
	m := metrics.New("v1", with("10-a"))
	m.Observe(t.Context(), &observe.PluginLoaded{Plugin: "10-a", Hooks: []string{"PreCreateContainer"}})
	all := scraped(t, m)
	for _, of := range [][2]string{
		{"wasmproxy_cgroup_fights_total", `plugin="10-a"`}, {"wasmproxy_cgroup_write_failures_total", `plugin="10-a"`}, {"wasmproxy_cgroup_write_failures_total", `plugin=""`},
		{"wasmproxy_panics_total", ""}, {"wasmproxy_post_hooks_dropped_total", ""},
		{"wasmproxy_plugin_calls_total", `outcome="failed",plugin="10-a"`}, {"wasmproxy_audit_lines_limited_total", `plugin="10-a"`},
		{"wasmproxy_calls_exempted_total", `plugin="10-a"`},
		{"wasmproxy_calls_refused_total", `hook="PreCreateContainer",plugin="10-a"`}, {"wasmproxy_hook_calls_total", `hook="PreCreateContainer",plugin="10-a"`},
	} {
		if s := series(all[of[0]], of[1]); s == nil || s.GetCounter().GetValue() != 0 {
			t.Errorf("%s{%s} is %v", of[0], of[1], s)
		}
	}
}

// The series of a plugin end with its files, also if a call ends later.
func TestARemovedPluginHasNoSeries(t *testing.T) {
	left := []string{"10-a", "20-b"}
	m := metrics.New("v1", func() (*status.Status, map[string]*plugin.Metrics) { return with(left...)() })
	for _, id := range left {
		m.Observe(t.Context(), called(id, abi.PreCreateContainer, observe.OK, time.Millisecond))
		m.Observe(t.Context(), &observe.CgroupFileFought{Plugin: id})
	}
	left = left[1:]
	m.Observe(t.Context(), &observe.PluginRemoved{Plugin: "10-a"})
	m.Observe(t.Context(), called("10-a", abi.PostCreateContainer, observe.OK, time.Millisecond)) // of a post hook
	m.Observe(t.Context(), &observe.CgroupFileFailed{Plugin: "10-a"})
	others := 0
	for name, f := range scraped(t, m) {
		for _, s := range f.GetMetric() {
			for _, l := range s.GetLabel() {
				if l.GetValue() == "10-a" {
					t.Errorf("%s has a series of the removed plugin: %v", name, s)
				} else if l.GetValue() == "20-b" {
					others++
				}
			}
		}
	}
	if others < 5 {
		t.Errorf("the other plugin has %d series", others)
	}
	if calls, _ := m.HookCalls(); calls["PreCreateContainer"] != 2 || calls["PostCreateContainer"] != 1 {
		t.Errorf("the run's totals are %v", calls)
	}
}

// TestPluginsThatAreNotKnown: a scrape while their owner does not answer ends no series.
func TestPluginsThatAreNotKnown(t *testing.T) {
	for name, levels := range map[string]metrics.Levels{"not known": none, "not there": with()} {
		m := metrics.New("v1", levels)
		m.Observe(t.Context(), called("10-a", abi.PreCreateContainer, observe.OK, time.Millisecond))
		scraped(t, m)
		if calls := m.Plugin("10-a").Calls; (calls == 1) != (name == "not known") {
			t.Errorf("a plugin that is %s has %d calls", name, calls)
		}
	}
}
