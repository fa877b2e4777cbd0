package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"
)

func threeRounds(party string, medians ...time.Duration) *series {
	s := &series{benchmark: "Version", party: party}
	for _, m := range medians {
		s.samples = append(s.samples, sample{times: []time.Duration{m * 9, m, m / 2}, cpu: 3 * m})
	}
	return s
}

func TestRatiosAreOfTheSameRound(t *testing.T) {
	base := threeRounds(direct, 100, 200, 1000)
	got := threeRounds(wasmproxy, 200, 600, 1000).ratios(base)
	for i, want := range []float64{2, 3, 1} {
		if got[i] != want {
			t.Errorf("round %d: ratio %v, want %v", i, got[i], want)
		}
	}
	if m := quantile(got, 0.5); m != 2 {
		t.Errorf("median ratio %v, want 2", m)
	}
}

func TestQuantile(t *testing.T) {
	values := make([]int, 200)
	for i := range values {
		values[i] = (i*7 + 3) % 200
	}
	for q, want := range map[float64]int{0: 0, 0.5: 100, 0.99: 198, 1: 199} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v of 0..199 is %d, want %d", q, got, want)
		}
	}
}

// The reader is the one that benchstat uses; it turns nanoseconds into seconds.
func TestBenchfmtIsRead(t *testing.T) {
	r := &result{
		series: [][]*series{
			{threeRounds(direct, 100, 200, 1000), threeRounds(wasmproxy1, 200, 600, 1000)},
			{{benchmark: largeList, party: koord, failure: "fails: message larger than max"}},
		},
		sizes: []size{{party: wasmproxy5, of: "RSS/at=idle", bytes: 30e6}},
	}
	var out bytes.Buffer
	r.benchfmt(&out)
	values := readBenchfmt(t, &out)
	for key, want := range map[string][]float64{
		"Version/party=direct sec/op":             {100e-9, 200e-9, 1000e-9},
		"Version/party=wasmproxy+1wasm x-direct":  {2, 3, 1},
		"Version/party=wasmproxy+1wasm sec/op":    {200e-9, 600e-9, 1000e-9},
		"RSS/at=idle/party=wasmproxy+5wasm bytes": {30e6},
		"ListContainers16MiB/party=koord sec/op":  {}, // it failed: there is no number
	} {
		if got := values[key]; !slices.EqualFunc(got, want, near) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// readBenchfmt returns the values in file order by name and unit.
func readBenchfmt(t *testing.T, r io.Reader) map[string][]float64 {
	t.Helper()
	values := map[string][]float64{}
	for reader := benchfmt.NewReader(r, "test"); reader.Scan(); {
		rec, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Fatalf("not a result: %v", reader.Result())
		}
		name := strings.TrimSuffix(rec.Name.String(), fmt.Sprintf("-%d", runtime.GOMAXPROCS(0)))
		for _, v := range rec.Values {
			values[name+" "+v.Unit] = append(values[name+" "+v.Unit], v.Value)
		}
	}
	return values
}
