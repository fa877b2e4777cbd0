package fuel

import "fmt"

// Slice is how much fuel a compiled guest is best given at a time. It runs no longer than
// that takes, some milliseconds, before it calls the host, even if every unit of it waits
// for memory. An interpreted one is slower, and needs a smaller slice for the same.
const Slice = 500_000

// Meter is the account of one call of a guest. The guest has a slice of the call's
// fuel in its global Fuel; the Meter knows how much it was given in all.
type Meter struct {
	limit, slice, granted int64
}

// NewMeter opens the account of a call that may use limit units, and gets no more than
// slice of them at a time. The guest has none yet: its host sets Fuel to Refuel(0), or to
// 0 for the guest to ask.
func NewMeter(limit, slice int64) Meter { return Meter{limit: limit, slice: slice} }

// Used is how much the guest used, given what Fuel holds.
func (m *Meter) Used(left int64) int64 { return m.granted - left }

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
