package rules

import (
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// The files that hold the limits which a pod shares with its containers.
const (
	CPUMax    = "cpu.max"
	MemoryMax = "memory.max"
)

// DefaultPeriod is the period of a quota where none is set, in µs: that of the kernel and of
// kubelet.
const DefaultPeriod = 100_000

// Limit is a CPU or memory limit of a container or pod: so many µs of CPU in each period of so
// many µs, or so many bytes and 1. An amount of 0 is no limit.
type Limit struct{ Amount, Period int64 }

// ParseLimit reads what cpu.max or memory.max holds; the zero Limit if it is another file. A text
// that is no number is no limit.
func ParseLimit(file, text string) Limit {
	amount, period, _ := strings.Cut(text, " ")
	n, _ := strconv.ParseInt(amount, 10, 64)
	switch file {
	case MemoryMax:
		return Limit{n, 1}
	case CPUMax:
		p, _ := strconv.ParseInt(period, 10, 64)
		return Limit{n, cmp.Or(p, DefaultPeriod)}
	}
	return Limit{}
}

// Above reports whether both are finite, and l allows more. The products do not fit an int64.
func (l Limit) Above(other Limit) bool {
	a := new(big.Int).Mul(big.NewInt(l.Amount), big.NewInt(other.Period))
	b := new(big.Int).Mul(big.NewInt(other.Amount), big.NewInt(l.Period))
	return l.Amount > 0 && other.Amount > 0 && a.Cmp(b) > 0
}

// In returns the amount of the limit in another period, rounded up.
func (l Limit) In(period int64) int64 {
	n := new(big.Int).Mul(big.NewInt(l.Amount), big.NewInt(period))
	n.Add(n, big.NewInt(l.Period-1))
	return n.Div(n, big.NewInt(l.Period)).Int64()
}

// Text is the limit as its file has it.
func (l Limit) Text(file string) string {
	amount := "max"
	if l.Amount > 0 {
		amount = strconv.FormatInt(l.Amount, 10)
	}
	if file == MemoryMax {
		return amount
	}
	return fmt.Sprintf("%s %d", amount, l.Period)
}

// FitBurst returns a burst that is no larger than the quota of a cpu.max, as the kernel wants it. Without a
// quota any burst is valid.
func FitBurst(burst, limit string) string {
	quota, _, _ := strings.Cut(limit, " ")
	q, noQuota := strconv.ParseInt(quota, 10, 64)
	b, noBurst := strconv.ParseInt(burst, 10, 64)
	if noQuota != nil || noBurst != nil || b <= q {
		return burst
	}
	return quota
}
