package fuel

import (
	"fmt"
	"time"
)

// The sizes of a slice, in units of fuel. Native code calls the host, and can be stopped, at
// the end of each. A unit takes 0.3 ns, or 190 where each is a load that misses all caches,
// and nobody knows which until a slice is over: the first is short, and none is so long that it
// takes more than some 20 ms when a guest that was fast turns slow.
const (
	FirstSlice = 20_000
	MaxSlice   = 100_000
	minSlice   = 1_000
)

// sliceTime is how long a slice is to take.
const sliceTime = time.Millisecond

// Meter is the account of one call of a guest. The guest has a slice of the call's
// fuel in its global Fuel; the Meter knows how much it was given in all.
type Meter struct {
	limit, most, slice, granted int64
}

// NewMeter opens the account of a call that may use limit units, and gets no more than
// most of them at a time. The guest has none yet: its host sets Fuel to Refuel(0), or to
// 0 for the guest to ask.
func NewMeter(limit, most int64) Meter {
	return Meter{limit: limit, most: most, slice: min(FirstSlice, most)}
}

// Used is how much the guest used, given what Fuel holds.
func (m *Meter) Used(left int64) int64 { return m.granted - left }

// Pace sets the size of the slices to come by how long the last one took. They grow slowly
// and shrink at once.
func (m *Meter) Pace(took time.Duration) {
	fitting := int64(float64(m.slice) * float64(sliceTime) / float64(max(took, 1)))
	m.slice = max(min(fitting, 4*m.slice, m.most), min(minSlice, m.most))
}

// Refuel returns the next value of Fuel, given the present one, or an error if the
// call has used more than it may.
func (m *Meter) Refuel(left int64) (int64, error) {
	used := m.Used(left)
	if used > m.limit {
		return 0, &Error{Limit: m.limit, Used: used}
	}
	slice := min(m.slice, m.limit-used)
	m.granted = used + slice
	return slice, nil
}

// Error says that a call used more fuel than it may.
type Error struct{ Limit, Used int64 }

// Error names the limit and what was used.
func (e *Error) Error() string {
	return fmt.Sprintf("used %d units of fuel, its limit is %d", e.Used, e.Limit)
}
