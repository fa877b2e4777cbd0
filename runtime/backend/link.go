package backend

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// A connection that comes up and is lost again. When it is made again is for
// package proxy.
const (
	steadyTime = 10 * time.Second // a connection that was up for as long is steady
	shortLives = 3                // so many shorter ones in a row make the runtime unsteady
	repeatTime = time.Minute      // between two events about a condition that lasts
)

// link is what the connection to the runtime was like so far. Of an unsteady
// runtime it makes one event a minute. It is for one goroutine.
type link struct {
	observer observe.Observer
	target   string

	since        time.Time // when it came up; zero while it is down
	upReported   bool      // there was an event that it is up
	downReported bool      // there was an event that it is down
	short        int       // short lives in a row
	losses       repeats   // while the runtime is unsteady
}

func (l *link) unsteady() bool { return l.short >= shortLives }

// up notes that the connection is up, and returns when to do so again; zero: not before
// it was lost.
func (l *link) up(ctx context.Context) (again time.Time) {
	if l.since.IsZero() {
		l.since, l.upReported = time.Now(), false
	}
	if l.unsteady() {
		if steady := l.since.Add(steadyTime); time.Now().Before(steady) {
			return steady
		}
		l.short = 0
		l.losses.reset()
	}
	if !l.upReported {
		l.upReported, l.downReported = true, false
		l.observer.Observe(ctx, &observe.BackendConnected{Backend: l.target})
	}
	return time.Time{}
}

// lost notes that the connection was lost.
func (l *link) lost(ctx context.Context) {
	lived := time.Since(l.since)
	l.since = time.Time{}
	if lived >= steadyTime {
		l.short = 0
		return
	}
	if l.short++; !l.unsteady() {
		return // it may have restarted
	}
	if n := l.losses.add(); n > 0 {
		l.observer.Observe(ctx, &observe.BackendUnsteady{Backend: l.target, Lost: n, Lived: lived})
	}
}

// repeats counts how often something happened. The first makes an event at once, and later ones make one event in each
// repeatTime. The zero value is ready. It is for one goroutine.
type repeats struct {
	count int       // since the last event
	next  time.Time // when the next event is due
}

// add counts one more. It returns 0 if no event is due now, else how many it stands for.
func (r *repeats) add() (stands int) {
	r.count++
	if time.Now().Before(r.next) {
		return 0
	}
	stands, r.count, r.next = r.count, 0, time.Now().Add(repeatTime)
	return stands
}

// reset notes that the condition is over.
func (r *repeats) reset() { *r = repeats{} }
