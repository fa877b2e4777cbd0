package main

import (
	"cmp"
	"slices"
	"time"
)

// quantile returns the value below which the part q of the values lies, by the nearest rank. It
// sorts the values. There must be one.
func quantile[T cmp.Ordered](values []T, q float64) T {
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

func (s sample) quantile(q float64) time.Duration { return quantile(slices.Clone(s.times), q) }

// quantile is that of all calls of all rounds.
func (s *series) quantile(q float64) time.Duration {
	var all []time.Duration
	for _, sample := range s.samples {
		all = append(all, sample.times...)
	}
	return quantile(all, q)
}

// cpu returns what a call costs the party's process.
func (s *series) cpu() time.Duration {
	var cpu time.Duration
	var calls int
	for _, sample := range s.samples {
		cpu, calls = cpu+sample.cpu, calls+len(sample.times)
	}
	return cpu / time.Duration(calls)
}

// ratios returns, for each round, how often as long as base's the median call of s took in the same round.
func (s *series) ratios(base *series) []float64 {
	r := make([]float64, len(s.samples))
	for i := range r {
		r[i] = float64(s.samples[i].quantile(0.5)) / float64(base.samples[i].quantile(0.5))
	}
	return r
}
