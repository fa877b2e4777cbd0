package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// How a Breaker decides.
const (
	maxFaults  = 5           // in a row: what a moment without processor time may cause is less
	minBackOff = time.Second // after the first opening; doubled by each try that fails
	maxBackOff = 5 * time.Minute
)

// BreakerState says whether a plugin is called.
type BreakerState uint8

// The states of a Breaker.
const (
	Closed   BreakerState = iota // every hook calls the plugin
	Open                         // no hook does
	HalfOpen                     // one hook tries it now, no other calls it
)

// String returns the state in lower case.
func (s BreakerState) String() string { return [...]string{"closed", "open", "half-open"}[s] }

// BreakerStatus is a Breaker at one moment.
type BreakerStatus struct {
	State  BreakerState
	Faults int       // in a row, up to now
	Last   error     // the last of these faults; nil if there is none
	Until  time.Time // when the next call may try; zero while closed
}

// Breaker stops the calls of a plugin that does nothing but fail, and tries it again
// after a while. What it counts are faults in a row: a plugin that serves every
// other call is worth calling. Ticks that succeed say nothing of calls, though: there
// is one each second. It belongs to one loaded plugin, whose successor begins with a
// new one. It is safe for concurrent use.
type Breaker struct {
	plugin   string
	observer observe.Observer
	now      func() time.Time

	mu      sync.Mutex
	status  BreakerStatus
	ofCall  bool // the last fault was not that of a Tick
	backOff time.Duration
	period  uint64 // grows at each change of state; answers of calls of an earlier one count for nothing
}

// NewBreaker returns the closed breaker of a plugin. now is time.Now if nil.
func NewBreaker(observer observe.Observer, plugin string, now func() time.Time) *Breaker {
	if now == nil {
		now = time.Now
	}
	return &Breaker{plugin: plugin, observer: observer, now: now}
}

// Status returns what the breaker does at the moment.
func (b *Breaker) Status() BreakerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// OpenError says that a plugin was not called because its breaker is open.
type OpenError struct{ BreakerStatus }

func (e *OpenError) Error() string {
	last, _, _ := strings.Cut(e.Last.Error(), "\n") // a panic has its stack below
	return fmt.Sprintf("not called until %s: its breaker is open after %d faults in a row, the last: %s",
		e.Until.UTC().Format(time.RFC3339Nano), e.Faults, last)
}

// Reset closes the breaker and forgets the faults: what they came from is gone.
func (b *Breaker) Reset(ctx context.Context) { b.update(ctx, b.close) }

// update changes the status, and reports an opening or a closing.
func (b *Breaker) update(ctx context.Context, change func()) {
	b.mu.Lock()
	before := b.status
	change()
	after := b.status
	b.mu.Unlock()
	switch {
	case after.State == Open && after.Faults > before.Faults:
		b.observer.Observe(ctx, &observe.BreakerOpened{Plugin: b.plugin, Until: after.Until, Faults: after.Faults, Err: after.Last})
	case after.State == Closed && before.State != Closed:
		b.observer.Observe(ctx, &observe.BreakerClosed{Plugin: b.plugin, Faults: before.Faults})
	}
}

// close closes the breaker. The caller holds the lock, as for the functions below.
func (b *Breaker) close() {
	b.backOff, b.status = 0, BreakerStatus{}
	b.change(Closed)
}

// outcome is what a call says of a plugin's health.
type outcome uint8

const (
	nothing outcome = iota // the caller went away, or the plugin was never called
	success                // a rejection is one
	fault
)

// enter asks for a call, and returns the period that the call belongs to, for
// leave. A nil breaker lets every call through.
func (b *Breaker) enter() (period uint64, err error) {
	if b == nil {
		return 0, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.State == Closed {
		return b.period, nil
	}
	if b.status.State == HalfOpen || b.now().Before(b.status.Until) {
		return 0, &OpenError{b.status}
	}
	b.change(HalfOpen)
	return b.period, nil
}

// leave says how a call of a period went.
func (b *Breaker) leave(ctx context.Context, period uint64, hook abi.Hook, how outcome, err error) {
	if b == nil {
		return
	}
	b.update(ctx, func() {
		switch {
		case period != b.period:
		case how == success && hook == abi.Tick && b.ofCall:
			if b.status.State != Closed { // calls may try again, of which the next fault is one too many
				b.status.Until = time.Time{}
				b.change(Closed)
			}
		case how == success && b.status.State != Closed:
			b.close()
		case how == success:
			b.status = BreakerStatus{}
		case how == fault:
			b.status.Faults++
			b.status.Last, b.ofCall = err, hook != abi.Tick
			if b.status.State == Closed && b.status.Faults < maxFaults {
				return
			}
			b.backOff = min(max(2*b.backOff, minBackOff), maxBackOff)
			b.status.Until = b.now().Add(b.backOff)
			b.change(Open)
		case b.status.State == HalfOpen: // the next call may try at once
			b.change(Open)
		}
	})
}

func (b *Breaker) change(to BreakerState) {
	b.status.State = to
	b.period++
}

// judgeHealth says what the end of a call tells of the plugin. err is what it
// answered; ctx and budget are those of all plugins of the call.
func judgeHealth(ctx context.Context, budget *Budget, took time.Duration, adj *Adjustment, err error) outcome {
	switch {
	case Gone(ctx):
		return nothing
	case err == nil, errors.As(err, new(*Rejection)):
		return success
	case errors.Is(err, ErrAway), errors.Is(err, ErrBusy): // it may be back at any moment, or was never called
		return nothing
	case adj.conflict != nil && !byLimit(err): // it met another plugin, and would be well alone
		return nothing
	case (ctx.Err() != nil || budget.Err() != nil) && took < fairTime: // others left it too little
		return nothing
	}
	return fault
}

// fairTime is what a plugin must have had before it is to blame for the end of
// a call's time.
const fairTime = 100 * time.Millisecond
