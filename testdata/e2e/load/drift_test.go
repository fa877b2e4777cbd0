package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A track is how one quantity went, sample by sample.
type track []float64

// thirds returns the medians of the first and the last third.
func (t track) thirds() (first, last float64) {
	n := len(t) / 3
	return median(t[:n]), median(t[len(t)-n:])
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// most is how much the median of the last third may be above that of the first: a twentieth.
const most = 0.05

// grown reports whether a quantity grew by more than a twentieth, and by more than slack, which is
// for small whole numbers.
func (t track) grown(slack float64) bool {
	first, last := t.thirds()
	return last-first > max(most*first, slack)
}

// tracks are those of all quantities, by name.
type tracks map[string]track

func (all tracks) add(sample map[string]float64) {
	for name, v := range sample {
		all[name] = append(all[name], v)
	}
}

// table is for people: the medians of the thirds and the difference.
func (all tracks) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %14s %14s %8s\n", "", "first third", "last third", "drift")
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		first, last := all[name].thirds()
		fmt.Fprintf(&b, "%-20s %14.0f %14.0f %+7.1f%%\n", name, first, last, 100*(last-first)/max(first, 1))
	}
	return b.String()
}

// TestDrift tells growth from noise.
func TestDrift(t *testing.T) {
	noise := func(i int) float64 { return float64((i * 7919 % 21) - 10) } // -10 to 10
	for name, c := range map[string]struct {
		at    func(i int) float64
		slack float64
		grown bool
	}{
		"flat":             {func(i int) float64 { return 100 }, 0, false},
		"noisy":            {func(i int) float64 { return 100 + noise(i) }, 0, false},
		"peaks":            {func(i int) float64 { return 100 + 900*float64(i%15/14) }, 0, false},
		"peaks at the end": {func(i int) float64 { return 100 + 900*float64(i/130) }, 0, false},
		"shrinks":          {func(i int) float64 { return 100 - float64(i)/2 }, 0, false},
		"a little":         {func(i int) float64 { return 100 + 5*float64(i)/150 }, 0, false},
		"a leak":           {func(i int) float64 { return 100 + 10*float64(i)/150 }, 0, true},
		"a noisy leak":     {func(i int) float64 { return 100 + 20*float64(i)/150 + noise(i) }, 0, true},
		"a step":           {func(i int) float64 { return 100 + 10*float64(i/75) }, 0, true},
		"one more of few":  {func(i int) float64 { return 10 + float64(i/75) }, 2, false},
		"more of few":      {func(i int) float64 { return 10 + 4*float64(i/75) }, 2, true},
	} {
		var got track
		for i := range 150 {
			got = append(got, c.at(i))
		}
		if got.grown(c.slack) != c.grown {
			first, last := got.thirds()
			t.Errorf("%s: medians %v and %v, slack %v: grown is %v", name, first, last, c.slack, !c.grown)
		}
	}
}
