package plugin

import (
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Question is one call of a host function by a plugin, and what it was answered. Its texts are its own.
type Question struct {
	Function *abi.Function
	Kind     abi.Object // of the object that is the first argument, as Event.Kind returns it; 0 if there is none
	Args     []Arg      // those of the function but its buffer, a pointer with its length being one

	Errno  abi.Errno // the error that was answered
	Number int64     // what get_i64 and pod_find answered
	Data   []byte    // what the functions with a buffer answered, whether it fitted or not
}

// Arg is an argument: a number, or a text.
type Arg struct {
	Number int64
	Text   string
	IsText bool
}

// Watched is a Plugin of which somebody can watch the calls.
type Watched interface {
	// Watch has w told of each call that begins until stop is called, or the plugin is closed. It is false if somebody
	// watches the plugin already, or it is closed.
	Watch(w Watcher) (stop func(), ok bool)
}

// Watcher watches the calls of one plugin, several at a time. It must not wait.
type Watcher interface {
	// Begin is called when a call begins, and returns what watches it; nil: nothing does.
	Begin(ev Event, adj *Adjustment) CallWatcher
	// Closed is called when the plugin gets no more calls: another version has replaced it, or its files have gone.
	Closed()
}

// CallWatcher watches one call, in the goroutine of that call. It must not wait.
type CallWatcher interface {
	// Ask gets a question of the plugin. With true it has answered in the host's place.
	Ask(q *Question) (answered bool)
	// Answered gets the question with the host's answer.
	Answered(q *Question)
	// End is called when the call has ended. The event and the adjustment of Begin are valid until it returns.
	End(err error)
}

// Watchable is who watches the calls of a plugin. Where nobody does, a call costs one look. The zero value is ready, and
// safe for concurrent use.
type Watchable struct {
	by atomic.Pointer[Watcher] // nil: nobody; of nil: nobody can any more
}

// Watch implements Watched.
func (s *Watchable) Watch(w Watcher) (stop func(), ok bool) {
	by := &w
	return func() { s.by.CompareAndSwap(by, nil) }, s.by.CompareAndSwap(nil, by)
}

// Begin returns what watches a call that begins; nil if nothing does.
func (s *Watchable) Begin(ev Event, adj *Adjustment) CallWatcher {
	if by := s.by.Load(); by != nil && *by != nil {
		return (*by).Begin(ev, adj)
	}
	return nil
}

// Close tells the watcher that the plugin is closed.
func (s *Watchable) Close() {
	if by := s.by.Swap(new(Watcher)); by != nil && *by != nil {
		(*by).Closed()
	}
}
