package plugin

import (
	"slices"
	"sync"
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

// Watched is a Plugin of which others can watch the calls.
type Watched interface {
	// Watch has w told of each call that begins until stop is called, or the plugin is closed.
	Watch(w Watcher) (stop func())
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

// Watches are who watches the calls of a plugin. Where nobody does, a call costs one look. The zero value is ready, and
// safe for concurrent use.
type Watches struct {
	mu     sync.Mutex
	closed bool
	all    atomic.Pointer[[]Watcher] // nil: nobody
}

// Watch implements Watched.
func (s *Watches) Watch(w Watcher) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		w.Closed()
		return func() {}
	}
	more := append(slices.Clone(s.watchers()), w)
	s.all.Store(&more)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		others := slices.DeleteFunc(slices.Clone(s.watchers()), func(o Watcher) bool { return o == w })
		s.all.Store(&others)
	}
}

func (s *Watches) watchers() []Watcher {
	if all := s.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Begin returns what watches a call that begins; nil if nothing does.
func (s *Watches) Begin(ev Event, adj *Adjustment) CallWatcher {
	var told callWatchers
	for _, w := range s.watchers() {
		if c := w.Begin(ev, adj); c != nil {
			told = append(told, c)
		}
	}
	if len(told) == 0 {
		return nil
	}
	return told
}

// Close tells the watchers that the plugin is closed.
func (s *Watches) Close() {
	s.mu.Lock()
	all := s.watchers()
	s.closed = true
	s.all.Store(nil)
	s.mu.Unlock()
	for _, w := range all {
		w.Closed()
	}
}

// callWatchers are told one after the other.
type callWatchers []CallWatcher

// Ask implements CallWatcher: the first that answers has the last word.
func (all callWatchers) Ask(q *Question) bool {
	return slices.ContainsFunc(all, func(c CallWatcher) bool { return c.Ask(q) })
}

func (all callWatchers) Answered(q *Question) {
	for _, c := range all {
		c.Answered(q)
	}
}

func (all callWatchers) End(err error) {
	for _, c := range all {
		c.End(err)
	}
}
