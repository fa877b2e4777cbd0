package metrics_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/testdata/doctable"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/metrics.md")

// TestTableInTheDocuments compares the table of metrics in docs/metrics.md with Families.
func TestTableInTheDocuments(t *testing.T) {
	var want strings.Builder
	want.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, f := range metrics.Families {
		labels := slices.Clone(f.Labels)
		for i, l := range labels {
			labels[i] = "`" + l + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.Name, f.Type, strings.Join(labels, ", "), f.Help)
	}
	doctable.Check(t, *update, "../../../docs/metrics.md", "metrics", want.String())
}

// everything has an event of each kind that is counted.
func everything() []observe.Event {
	failed := errors.New("failed")
	return []observe.Event{
		&observe.CallFinished{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: time.Second, Backend: time.Second},
		&observe.HookCalled{Plugin: "10-a", Hook: abi.PreCreateContainer, Outcome: observe.Failed, Class: observe.ClassTrap, Err: failed, Duration: time.Second},
		called("10-a", abi.PreCreateContainer, observe.OK, time.Second),
		&observe.FunctionCalled{Plugin: "10-a", Function: "wp_configure", Fuel: 1, HostCalls: 1},
		&observe.CallRefused{Plugin: "10-a", Hook: abi.PreCreateContainer}, &observe.CallExempted{Plugin: "10-a", Hook: abi.PreCreateContainer}, &observe.HooksSkipped{Hook: abi.PreCreateContainer},
		&observe.PostHookDropped{Hook: abi.PostCreateContainer}, &observe.PostHooksLate{Hook: abi.PreCreateContainer}, &observe.Panicked{},
		&observe.DryRunChange{Plugin: "10-a"}, &observe.DryRunRejection{Plugin: "10-a"}, &observe.Conflict{Plugin: "10-a"},
		&observe.ShadowCalled{Plugin: "10-a", Outcome: observe.ShadowSame},
		&observe.DeferredUpdateFailed{Plugin: "10-a"}, &observe.PluginLogCut{Plugin: "10-a", DroppedBytes: 5},
		&observe.PluginLoaded{Plugin: "10-a"}, &observe.PluginReplaced{PluginLoaded: observe.PluginLoaded{Plugin: "10-a"}}, &observe.PluginRejected{Plugin: "10-a"},
		&observe.BreakerOpened{Plugin: "10-a"}, &observe.ProbationFailed{Plugin: "10-a"}, &observe.TickStopped{Plugin: "10-a", Class: observe.ClassFuel}, &observe.StoreNotFilled{Failures: 2},
		&observe.CgroupFileWritten{Plugin: "10-a"}, &observe.CgroupFileFailed{}, &observe.CgroupFileRepaired{Plugin: "10-a"}, &observe.CgroupFileFought{Plugin: "10-a"},
		&observe.CgroupFileUndone{}, &observe.SuspendFailed{}, &observe.RestoreFailed{}, &observe.StateNotSaved{}, &observe.SystemdPropertyRefused{},
		&observe.AuditLinesLimited{Plugin: "10-a", Lines: 3},
	}
}

// Each row of the table is exported, with its labels, and nothing beside it but Go's and the
// process' metrics. All are as Prometheus' linter wants them.
func TestEachRowIsExported(t *testing.T) {
	levels := with("10-a")
	m := metrics.New("v1", func() (*status.Status, map[string]*plugin.Metrics) {
		s, own := levels()
		s.Lost = status.Lost{AuditLines: 1, Spans: 1}
		s.Backend.Disconnects = 1
		s.Plugins.Plugins[0].Probation = time.Now()
		s.Plugins.Plugins[0].Active = &status.Version{Version: "1.0.0", Digest: "ab", Settings: "cd"}
		return s, own
	})
	for _, e := range everything() {
		m.Observe(t.Context(), e)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	all := scraped(t, m)
	for _, f := range metrics.Families {
		got := all[f.Name]
		delete(all, f.Name)
		if got == nil {
			t.Errorf("%s is not exported", f.Name)
			continue
		}
		want := map[metrics.Type]dto.MetricType{metrics.Counter: dto.MetricType_COUNTER, metrics.Gauge: dto.MetricType_GAUGE, metrics.Histogram: dto.MetricType_HISTOGRAM}[f.Type]
		if got.GetType() != want || got.GetHelp() != f.Help {
			t.Errorf("%s is %v with the help %q", f.Name, got.GetType(), got.GetHelp())
		}
		if f.Type == metrics.Counter && !strings.HasPrefix(f.Name, "wasmproxy_plugin_own_") && sum(got) == 0 {
			t.Errorf("%s counts no event", f.Name)
		}
		for _, m := range got.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if want := slices.Sorted(slices.Values(f.Labels)); !slices.Equal(labels, want) {
				t.Errorf("%s has the labels %q, want %q", f.Name, labels, want)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "wasmproxy_") {
			t.Errorf("%s is exported and not in the table", name)
		}
	}
	if all["go_goroutines"] == nil || all["process_resident_memory_bytes"] == nil {
		t.Error("Go's and the process' metrics are missing")
	}
}

// OpenMetrics is served to who asks for it.
func TestOpenMetrics(t *testing.T) {
	m := metrics.New("v1", with("10-a"))
	for _, e := range everything() {
		m.Observe(t.Context(), e)
	}
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	if body := w.Body.String(); !strings.HasPrefix(w.Header().Get("Content-Type"), "application/openmetrics-text") || !strings.HasSuffix(body, "# EOF\n") || !strings.Contains(body, "# TYPE wasmproxy_calls counter\n") {
		t.Errorf("%v:\n%s", w.Header(), body)
	}
}

// sum adds the values of counters.
func sum(f *dto.MetricFamily) (n float64) {
	for _, m := range f.GetMetric() {
		n += m.GetCounter().GetValue()
	}
	return n
}

// seriesOf counts the series of the proxy's own.
func seriesOf(all map[string]*dto.MetricFamily) (n int) {
	for name, f := range all {
		if strings.HasPrefix(name, "wasmproxy_") {
			n += len(f.GetMetric())
		}
	}
	return n
}

// A thousand pods, containers and images make no more series than one.
func TestPodsMakeNoSeries(t *testing.T) {
	m := metrics.New("v1", with("10-a"))
	var first int
	for i := range 1000 {
		about := observe.Object{Namespace: fmt.Sprint("ns", i), Pod: fmt.Sprint("pod", i), PodID: fmt.Sprint(i), Container: fmt.Sprint("c", i), Image: fmt.Sprint("image", i)}
		reason := fmt.Errorf("reason %d", i)
		for _, e := range append(everything(),
			&observe.HookCalled{Plugin: "10-a", Hook: abi.PreCreateContainer, Subject: about, Outcome: observe.Failed, Class: observe.ClassError, Err: reason},
			&observe.CallRefused{Plugin: "10-a", Hook: abi.PreCreateContainer, Object: about, Reason: reason.Error()},
			&observe.CallExempted{Plugin: "10-a", Hook: abi.PreCreateContainer, Object: about, Reason: reason.Error()},
			&observe.FieldChanged{Plugin: "10-a", Hook: abi.PreCreateContainer, Object: about, Field: reason.Error()},
			&observe.CgroupFileFailed{Plugin: "10-a", Object: about, File: reason.Error(), Err: reason},
			&observe.Conflict{Plugin: "10-a", First: "20-b", Object: about, Field: reason.Error()},
		) {
			m.Observe(t.Context(), e)
		}
		if i == 0 {
			first = seriesOf(scraped(t, m))
		}
	}
	if last := seriesOf(scraped(t, m)); last != first || first < 50 {
		t.Errorf("%d series for one pod, %d for a thousand", first, last)
	}
}

// Events that come with each call are counted without memory of their own.
func TestFrequentEventsTakeNoMemory(t *testing.T) {
	m := metrics.New("v1", with("10-a"))
	finished := &observe.CallFinished{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: time.Millisecond, Backend: time.Millisecond}
	hook := called("10-a", abi.PreCreateContainer, observe.OK, time.Millisecond)
	unknown := &observe.CallFinished{Method: "/made.up/Method", Code: "Unimplemented", Route: observe.Passed}
	for _, e := range []observe.Event{finished, hook, unknown} {
		if n := testing.AllocsPerRun(100, func() { m.Observe(t.Context(), e) }); n != 0 {
			t.Errorf("%T takes %v allocations", e, n)
		}
	}
}

// Events come while plugins come and go, and while several scrape.
func TestConcurrentUse(t *testing.T) {
	var mu sync.Mutex
	ids := []string{"10-a", "20-b"}
	m := metrics.New("v1", func() (*status.Status, map[string]*plugin.Metrics) {
		mu.Lock()
		defer mu.Unlock()
		return with(ids...)()
	})
	const calls = 200
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for i := range calls {
				m.Observe(t.Context(), &observe.CallFinished{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: time.Millisecond, Backend: time.Millisecond})
				m.Observe(t.Context(), called([]string{"10-a", "20-b"}[n%2], abi.PreCreateContainer, observe.OK, time.Millisecond))
				if n == 0 && i%50 == 0 {
					mu.Lock()
					ids = ids[:1]
					mu.Unlock()
					m.Observe(t.Context(), &observe.PluginRemoved{Plugin: "20-b"})
					mu.Lock()
					ids = append(ids, "20-b")
					mu.Unlock()
				}
			}
		})
		all.Go(func() {
			for range 10 {
				_ = seriesOf(scraped(t, m))
				_ = m.Plugin("10-a")
				_ = m.Calls()
			}
		})
	}
	all.Wait()
	if got := m.Calls()["CreateContainer"]; got != 4*calls {
		t.Errorf("%d calls are counted, want %d", got, 4*calls)
	}
	if got, _ := m.HookCalls(); got["PreCreateContainer"] != 4*calls {
		t.Errorf("%v calls of plugins are counted, want %d", got, 4*calls)
	}
	if got := m.Plugin("10-a").Calls; got != 2*calls {
		t.Errorf("%d calls of 10-a, want %d", got, 2*calls)
	}
}

// A scrape of a node with five plugins.
func BenchmarkScrape(b *testing.B) {
	m := metrics.New("v1", with("10-a", "20-b", "30-c", "40-d", "50-e"))
	for _, id := range []string{"10-a", "20-b", "30-c", "40-d", "50-e"} {
		for _, h := range []abi.Hook{abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PostStopContainer} {
			m.Observe(b.Context(), called(id, h, observe.OK, time.Millisecond))
		}
	}
	for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ListContainers", "Version", "Status", "PodSandboxStatus", "ContainerStatus"} {
		m.Observe(b.Context(), &observe.CallFinished{Method: "/runtime.v1.RuntimeService/" + method, Code: "OK", Route: observe.Passed, Duration: time.Millisecond, Backend: time.Millisecond})
	}
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		size = w.Body.Len()
	}
	b.ReportMetric(float64(size), "B/scrape")
}

func BenchmarkObserve(b *testing.B) {
	m := metrics.New("v1", with("10-a"))
	for name, e := range map[string]observe.Event{
		"CallFinished": &observe.CallFinished{Method: createContainer, Code: "OK", Route: observe.Hooked, Duration: time.Millisecond, Backend: time.Millisecond},
		"HookCalled":   called("10-a", abi.PreCreateContainer, observe.OK, time.Millisecond),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Observe(b.Context(), e)
			}
		})
	}
}
