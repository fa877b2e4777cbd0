// Package observe has a type for each thing that happens in the proxy and that somebody may
// want to know: an operator by the log, a test, a simulation, a metric, a trace. The code in
// which it happens makes an [Event] and gives it to the [Observer] that its constructor got.
//
// An event holds typed values. Its texts hold no secret, and what a plugin had a part in is
// one printable line: whoever makes the event sees to that, since only it knows the secrets.
//
// Whoever makes an event also limits how often: a condition that lasts is an event when it
// begins, and then one a minute with the number of times that it stands for. It knows when
// the condition is over, and all sinks then agree.
package observe

import (
	"context"
	"slices"
	"sync"
)

// Event is one of the pointers to this package's structs. A sink may keep an event, except a
// [HookCalled], which belongs to the caller again when Observe has returned; see [Keep].
type Event interface{ event() }

// occurrence makes a pointer to a struct an Event.
type occurrence struct{}

func (*occurrence) event() {}

// Observer is a sink of events. It is safe for concurrent use and returns at once: calls wait
// for it. ctx is that of the call in which the event happened.
type Observer interface {
	// Wants reports whether the sink makes use of events of a frequent kind at the moment.
	Wants(Kind) bool
	// Observe takes an event. It ignores one that it makes no use of.
	Observe(ctx context.Context, e Event)
}

// Kind is a kind of events that happen so often that a caller asks [Observer.Wants] before it
// makes one. All other events are made whether or not a sink wants them.
type Kind uint8

// The frequent kinds.
const (
	KindHookCalled        Kind = iota // HookCalled
	KindFunctionCalled                // FunctionCalled
	KindFieldChanged                  // FieldChanged
	KindHostCallRefused               // HostCallRefused
	KindCgroupFileWritten             // CgroupFileWritten
	KindCallFinished                  // CallFinished
	kindPluginLog                     // PluginLog, one kind for each of its levels
)

// KindPluginLog is the kind of a PluginLog with this level.
func KindPluginLog(l Level) Kind { return kindPluginLog + Kind(l) }

// Level is the severity of a line that a plugin logs. The numbers are those of the ABI.
type Level uint8

// The levels.
const (
	Debug Level = iota
	Info
	Warn
	Error
)

// String returns the level in lower case.
func (l Level) String() string { return [...]string{"debug", "info", "warn", "error"}[l] }

// Sinks are several observers as one. No sink at all is one that wants nothing.
type Sinks []Observer

// Wants implements Observer.
func (s Sinks) Wants(k Kind) bool {
	return slices.ContainsFunc(s, func(sink Observer) bool { return sink.Wants(k) })
}

// Observe implements Observer.
func (s Sinks) Observe(ctx context.Context, e Event) {
	for _, sink := range s {
		sink.Observe(ctx, e)
	}
}

// Func is an observer of all events.
type Func func(context.Context, Event)

// Wants implements Observer.
func (f Func) Wants(Kind) bool { return true }

// Observe implements Observer.
func (f Func) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Discard returns an observer that wants nothing.
func Discard() Observer { return Sinks(nil) }

// Keep returns the event, or a copy if it belongs to the caller of Observe.
func Keep(e Event) Event {
	called, ok := e.(*HookCalled)
	if !ok {
		return e
	}
	kept := *called
	if kept.Subject != nil {
		kept.Subject = kept.About()
	}
	return &kept
}

// Recorder keeps all events in memory. The zero value is ready.
type Recorder struct {
	mu     sync.Mutex
	events []Event
	more   chan struct{} // closed when there is one more; nil if nobody waits
}

// Wants implements Observer.
func (r *Recorder) Wants(Kind) bool { return true }

// Observe implements Observer.
func (r *Recorder) Observe(_ context.Context, e Event) {
	e = Keep(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

// Take returns the events since the last Take, in their order.
func (r *Recorder) Take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.events
	r.events = nil
	return all
}

// Next returns a channel that is closed when there is one more event.
func (r *Recorder) Next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.more == nil {
		r.more = make(chan struct{})
	}
	return r.more
}

// Wait returns the first event since the last Take for which match is true, or waits for it
// until ctx is done. It takes nothing.
func (r *Recorder) Wait(ctx context.Context, match func(Event) bool) (Event, error) {
	for {
		more := r.Next()
		r.mu.Lock()
		events := r.events
		r.mu.Unlock()
		if i := slices.IndexFunc(events, match); i >= 0 {
			return events[i], nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// All returns those of the events that have type E.
func All[E Event](events []Event) (all []E) {
	for _, e := range events {
		if of, ok := e.(E); ok {
			all = append(all, of)
		}
	}
	return all
}
