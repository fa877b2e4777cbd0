package sdk

import (
	"math"
	"strconv"
	"testing"
)

func FuzzFormatInt(f *testing.F) {
	for _, v := range []int64{0, 1, -1, 9, 10, -10, math.MaxInt64, math.MinInt64} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v int64) {
		if got, want := FormatInt(v), strconv.FormatInt(v, 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func FuzzParseInt(f *testing.F) {
	for _, s := range []string{"", "0", "-0", "+7", "-", "+", "007", "1 ", " 1", "0x1", "1_000", "1e3", "٣",
		"9223372036854775807", "9223372036854775808", "9223372036854775810", "-9223372036854775808",
		"-9223372036854775809", "-9223372036854775818", "92233720368547758070", "18446744073709551617"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := ParseInt(s)
		want, err := strconv.ParseInt(s, 10, 64)
		if ok != (err == nil) || ok && got != want {
			t.Errorf("%q: got %d, %v; want %d, %v", s, got, ok, want, err)
		}
	})
}
