package scale

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// reading is what was spent until a moment.
type reading struct {
	at      time.Time
	cpu     time.Duration // of the kube-apiserver
	bytes   int64         // that it has sent to all agents, with TLS
	reports int           // requests to write a PluginNode, also those that it has refused
	plugins int           // the same of NodePlugins
}

// row is what was spent in one part of the test.
type row struct {
	what string
	reading
	took time.Duration
}

// read takes a reading.
func (f *fleet) read() (r reading) {
	f.t.Helper()
	r.at = time.Now()
	r.cpu = processorTime(f.t, f.s.PID)
	for _, a := range f.agents {
		r.bytes += a.bytes.Load()
	}
	for line := range strings.Lines(f.get("/metrics")) {
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, `group="fleet.wasmproxy.io"`) {
			continue
		}
		reads := func(verb string) bool { return strings.Contains(line, `verb="`+verb+`"`) }
		if slices.ContainsFunc([]string{"GET", "LIST", "WATCH"}, reads) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			f.t.Fatalf("reading the API server's metric %q: %v", line, err)
		}
		switch {
		case strings.Contains(line, `resource="pluginnodes"`):
			r.reports += int(n)
		case strings.Contains(line, `resource="nodeplugins"`):
			r.plugins += int(n)
		}
	}
	return r
}

// live is the memory of the kube-apiserver: heap and stacks that are in use after a garbage collection. What it holds beside that
// differs by a tenth from run to run.
func (f *fleet) live() (bytes float64) {
	f.t.Helper()
	f.get("/debug/pprof/heap?gc=1") // which collects first
	for line := range strings.Lines(f.get("/metrics")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "go_memstats_heap_inuse_bytes" || name == "go_memstats_stack_inuse_bytes" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				f.t.Fatalf("reading the API server's metric %q: %v", line, err)
			}
			bytes += n
		}
	}
	return bytes
}

// get is what the API server has at a path.
func (f *fleet) get(path string) string {
	f.t.Helper()
	a, err := f.s.Call(http.MethodGet, path, testcluster.AdminToken, nil)
	if err != nil || a.Code != http.StatusOK {
		f.t.Fatalf("reading %s of the API server: %v: %d", path, err, a.Code)
	}
	return string(a.Body)
}

// processorTime is the CPU time that a process has used.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // from the third field of proc(5) on
	number := func(field int) int64 {
		n, err := strconv.ParseInt(fields[field-3], 10, 64)
		if err != nil {
			t.Fatalf("reading field %d of /proc/%d/stat: %v", field, pid, err)
		}
		return n
	}
	const tick = time.Second / 100 // USER_HZ, which is 100 on all architectures that the proxy is built for
	return time.Duration(number(14)+number(15)) * tick
}

// measure has a part of the test run, and keeps what it has cost.
func (f *fleet) measure(what string, part func()) row {
	f.t.Helper()
	before := f.read()
	part()
	r := row{what: what, reading: f.read()}
	r.took = r.at.Sub(before.at)
	r.cpu -= before.cpu
	r.bytes -= before.bytes
	r.reports -= before.reports
	r.plugins -= before.plugins
	f.rows = append(f.rows, r)
	return r
}

// figure is something measured, and what the design of the fleet says of it, for 5,000 agents.
type figure struct {
	what          string
	has, designed float64
	unit          string
}

// table is what was measured, as Markdown.
func (f *fleet) table(figures []figure) string {
	var b strings.Builder
	b.WriteString("| | time | CPU of kube-apiserver | writes of PluginNodes | writes of NodePlugins | bytes to each node |\n|---|---|---|---|---|---|\n")
	for _, r := range f.rows {
		fmt.Fprintf(&b, "| %s | %.1f s | %.2f s | %d | %d | %d |\n",
			r.what, r.took.Seconds(), r.cpu.Seconds(), r.reports, r.plugins, r.bytes/int64(len(f.agents)))
	}
	b.WriteString("\n| | measured | expected |\n|---|---|---|\n")
	for _, c := range figures {
		fmt.Fprintf(&b, "| %s | %.2f %s | %.2f %[3]s |\n", c.what, c.has, c.unit, c.designed)
	}
	return b.String()
}
