package plugin

import (
	"cmp"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Bounds of what one plugin may count.
const (
	MaxSeries     = 64
	MaxSeriesName = 128 // bytes, with labels
)

// Metrics holds what one plugin counts and measures. It is safe for concurrent use.
type Metrics struct {
	mu      sync.Mutex
	series  map[string]*Series
	dropped int64
}

// Series is one metric with one set of labels.
type Series struct {
	Name  string // such as throttled_total{qos="Burstable"}
	Kind  int32  // abi.MetricAdd and its like
	Value int64  // of a counter or gauge; of a histogram the sum of what it took

	// Count is how many values a histogram took, and Buckets how many of them had
	// so many binary digits: bucket 0 is for 0 and less, bucket n for less than 1<<n.
	Count   int64
	Buckets [64]int64
}

// NewMetrics returns an empty Metrics.
func NewMetrics() *Metrics { return &Metrics{series: map[string]*Series{}} }

const labelPattern = `[a-z_][a-z0-9_]*="[^"\\[:cntrl:]]*"`

var seriesName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\{` + labelPattern + `(,` + labelPattern + `)*\})?$`)

// Update takes a value. It answers abi.Invalid for what is no name or kind, and for a
// counter that would shrink. The answer follows from the arguments alone, or a plugin could
// read in it what it counted for another pod: a value for a name that has another kind, or
// for one name too many, is dropped and counted, and the answer is abi.OK.
func (m *Metrics) Update(kind int32, name string, v int64) abi.Errno {
	if kind < abi.MetricAdd || kind > abi.MetricObserve {
		return abi.Invalid
	}
	if kind == abi.MetricAdd && v < 0 {
		return abi.Invalid
	}
	if len(name) > MaxSeriesName {
		return abi.TooLarge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.series[name]
	if s == nil && !seriesName.MatchString(name) {
		return abi.Invalid
	}
	if s == nil && len(m.series) < MaxSeries {
		s = &Series{Name: strings.Clone(name), Kind: kind} // the caller's may be lent
		m.series[s.Name] = s
	}
	if s == nil || s.Kind != kind {
		m.dropped++
		return abi.OK
	}
	switch kind {
	case abi.MetricSet:
		s.Value = v
	case abi.MetricObserve:
		s.Count++
		s.Buckets[bits.Len64(uint64(max(v, 0)))]++
		s.Value = sum(s.Value, v)
	default:
		s.Value = sum(s.Value, v)
	}
	return abi.OK
}

// Dropped is how many values were dropped, because their name has another kind or there
// were MaxSeries names already.
func (m *Metrics) Dropped() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped
}

// sum adds without going round.
func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// All returns a copy of all series, sorted by name.
func (m *Metrics) All() []Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Series, 0, len(m.series))
	for _, s := range m.series {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Series) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
