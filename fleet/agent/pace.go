package agent

import (
	"math/rand/v2"
	"time"
)

// Pace spreads reports. All nodes of a cluster learn of a rollback at once, and would write at once. It is not for several goroutines.
type Pace struct {
	every time.Duration
	last  time.Time // of the last report
	next  time.Time // when the news are due; zero: there are none
}

// NewPace has reports at least a time apart, which is also the longest random wait before one.
func NewPace(every time.Duration) *Pace { return &Pace{every: every} }

// Due is when the news are to be reported that are there now. It stays the same until Done.
func (p *Pace) Due(now time.Time) time.Time {
	if p.next.IsZero() {
		p.next = now.Add(rand.N(max(p.every, 1)))
		if earliest := p.last.Add(p.every); p.next.Before(earliest) {
			p.next = earliest
		}
	}
	return p.next
}

// Reported says that the news are reported now.
func (p *Pace) Reported(now time.Time) { p.last, p.next = now, time.Time{} }

// Drop says that there are no news any more.
func (p *Pace) Drop() { p.next = time.Time{} }
