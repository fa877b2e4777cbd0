package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"
)

// A result is what one run found.
type result struct {
	series [][]*series // by benchmark
	sizes  []size
}

// table writes the result for people.
func (r *result) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "call\tparty\tmedian\tp99\tx direct\tits quartiles\tCPU in the party")
	for _, all := range r.series {
		for _, s := range all {
			s.row(t, all[0])
		}
	}
	for _, s := range r.sizes {
		fmt.Fprintf(t, "%s\t%s\t%.1f MB\n", s.of, s.party, float64(s.bytes)/1e6)
	}
	return t.Flush()
}

func (s *series) row(w io.Writer, base *series) {
	if s.failure != "" {
		fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t%s\n", s.benchmark, s.party, s.failure)
		return
	}
	ratios := s.ratios(base)
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t%.2f - %.2f\t%s\n", s.benchmark, s.party, micro(s.quantile(0.5)), micro(s.quantile(0.99)),
		quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75), micro(s.cpu()))
}

func micro(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/1e3) }

// benchfmt writes the result in Go's benchmark format, one line for each round, so that benchstat
// (golang.org/x/perf) reads a run as so many samples. ns/op is the median call of the round.
func (r *result) benchfmt(w io.Writer) {
	for _, all := range r.series {
		for _, s := range all {
			s.lines(w, all[0])
		}
	}
	for _, s := range r.sizes {
		fmt.Fprintf(w, "%s 1 %d bytes\n", benchmarkName(s.of, s.party), s.bytes)
	}
}

func (s *series) lines(w io.Writer, base *series) {
	if s.failure != "" {
		fmt.Fprintf(w, "# %s %s\n", benchmarkName(s.benchmark, s.party), s.failure)
		return
	}
	ratios := s.ratios(base)
	for i, sample := range s.samples {
		fmt.Fprintf(w, "%s %d %d ns/op %d p99-ns/op %d cpu-ns/op %.3f x-direct\n", benchmarkName(s.benchmark, s.party), len(sample.times),
			sample.quantile(0.5), sample.quantile(0.99), int64(sample.cpu)/int64(len(sample.times)), ratios[i])
	}
}

// benchmarkName is the first field of a line of Go's benchmark format; it ends with GOMAXPROCS.
func benchmarkName(of, party string) string {
	return fmt.Sprintf("Benchmark%s/party=%s-%d", of, party, runtime.GOMAXPROCS(0))
}
