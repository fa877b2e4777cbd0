package bench_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var results = flag.String("results", "", "file that the result is written to, beside the output")

// A result is what one run found.
type result struct {
	load  float64                    // of the machine at the start: processes that run or wait to
	lives map[string][]time.Duration // by party and round
	own   map[string]time.Duration   // by party: of the life of a pod, in the proxy without the runtime
	pods  int
	cpu   map[string]time.Duration // of a minute of steady calls
}

// report prints the result, and writes it with what it was measured on and a line of Go's benchmark
// format for each pod.
func (r *result) report(t *testing.T) {
	t.Helper()
	table := r.table()
	t.Log("\n" + table)
	if *results == "" {
		return
	}
	var text strings.Builder
	header(&text)
	fmt.Fprintf(&text, "\n# %s\n", strings.ReplaceAll(strings.TrimSpace(table), "\n", "\n# "))
	for _, party := range parties {
		for _, d := range r.lives[party] {
			fmt.Fprintf(&text, "BenchmarkPodLife/party=%s-%d 1 %d ns/op\n", party, runtime.GOMAXPROCS(0), d.Nanoseconds())
		}
	}
	for _, party := range parties[1:] {
		fmt.Fprintf(&text, "BenchmarkPodLifeInProxy/party=%s-%d 1 %d ns/op\n", party, runtime.GOMAXPROCS(0), r.own[party].Nanoseconds())
		fmt.Fprintf(&text, "BenchmarkSteadyCalls%dPods/party=%s-%d 1 %d cpu-ns/min\n", r.pods, party, runtime.GOMAXPROCS(0), r.cpu[party].Nanoseconds())
	}
	if err := os.WriteFile(*results, []byte(text.String()), 0o644); err != nil {
		t.Error(err)
	}
}

func (r *result) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %10s  %s\n", "life of a pod", "median", "longer than direct in the same round: median, 95 % confidence interval")
	for _, party := range parties {
		fmt.Fprintf(&b, "%-16s %7.1f ms", party, median(r.lives[party]).Seconds()*1e3)
		if party != direct {
			middle, low, high := longer(r.lives[direct], r.lives[party])
			fmt.Fprintf(&b, "  %+.2f %% [%+.2f %%, %+.2f %%]: %s", 100*middle, 100*low, 100*high, r.verdict(low, high))
			fmt.Fprintf(&b, "; in the proxy alone %.2f ms, %.2f %%", r.own[party].Seconds()*1e3, 100*float64(r.own[party])/float64(median(r.lives[direct])))
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "rounds: %d; load of the machine at the start: %.1f on %d CPUs\n\n%-16s %s\n", len(r.lives[direct]), r.load, runtime.NumCPU(), "", fmt.Sprintf("CPU time of a minute of kubelet's steady calls, %d pods", r.pods))
	for _, party := range parties[1:] {
		fmt.Fprintf(&b, "%-16s %.3f s (%.2f %% of a CPU)\n", party, r.cpu[party].Seconds(), 100*r.cpu[party].Minutes())
	}
	return b.String()
}

// bound is how much longer the life of a pod may be with wasmproxy: one in a hundred.
const bound = 0.01

// verdict says what the interval shows of the bound. On a busy machine each process more waits for a CPU.
func (r *result) verdict(low, high float64) string {
	switch {
	case r.load > float64(runtime.NumCPU()):
		return "not judged, the machine is busy"
	case high <= bound:
		return "at most 1 %"
	case low > bound:
		return "MORE than 1 %"
	}
	return "too noisy to tell from 1 %"
}

// loadOfMachine is the first number of /proc/loadavg.
func loadOfMachine(t *testing.T) (load float64) {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(text), &load)
	}
	if err != nil {
		t.Fatalf("the load of the machine: %v", err)
	}
	return load
}

// longer returns by which part the durations of a party are longer than those of the base, in the median over the rounds, with
// the interval that has the true median with a probability of 95 %. It is that of the sign test, which assumes nothing of the
// distribution.
func longer(base, party []time.Duration) (middle, low, high float64) {
	parts := make([]float64, len(base))
	for i := range base {
		parts[i] = float64(party[i])/float64(base[i]) - 1
	}
	slices.Sort(parts)
	n := float64(len(parts))
	reach := 0.98 * math.Sqrt(n)
	return parts[len(parts)/2], parts[max(0, int(n/2-reach))], parts[min(len(parts)-1, int(math.Ceil(n/2+reach)))]
}

func median(values []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// header writes the configuration lines of Go's benchmark format, as make bench does.
func header(b *strings.Builder) {
	commit, _ := exec.Command("git", "-C", filepath.Dir(*results), "describe", "--always", "--dirty").Output()
	for _, line := range [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"pkg", "github.com/wasmproxy/wasmproxy/testdata/e2e/bench"},
		{"cpu", procField("/proc/cpuinfo", "model name")}, {"cpus", fmt.Sprint(runtime.NumCPU())}, {"memory", procField("/proc/meminfo", "MemTotal")},
		{"go", runtime.Version()}, {"commit", strings.TrimSpace(string(commit))}, {"date", time.Now().UTC().Format(time.DateOnly)},
	} {
		fmt.Fprintf(b, "%s: %s\n", line[0], line[1])
	}
}

// procField returns the first value of a key in a file of `key : value` lines, or "unknown".
func procField(path, key string) string {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
