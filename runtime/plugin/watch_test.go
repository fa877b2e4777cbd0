package plugin

import (
	"errors"
	"slices"
	"testing"
)

// watcher notes what it is told of calls.
type watcher struct{ told []string }

func (w *watcher) Begin(Event, *Adjustment) CallWatcher {
	w.told = append(w.told, "begin")
	return w
}
func (w *watcher) Closed()            { w.told = append(w.told, "closed") }
func (w *watcher) Ask(*Question) bool { return false }
func (w *watcher) Answered(*Question) {}
func (w *watcher) End(err error)      { w.told = append(w.told, "end "+err.Error()) }

// One watcher at a time is told of calls, from when it began to watch until it stops or the plugin is closed.
func TestWatchable(t *testing.T) {
	var s Watchable
	if c := s.Begin(nil, nil); c != nil {
		t.Errorf("nobody watches, and %v is told", c)
	}
	call := func() {
		if c := s.Begin(nil, nil); c != nil {
			c.End(errors.New("x"))
		}
	}
	first, second, third := &watcher{}, &watcher{}, &watcher{}
	stop, ok := s.Watch(first)
	if !ok {
		t.Fatal("the first cannot watch")
	}
	call()
	stopOther, ok := s.Watch(second)
	if ok {
		t.Error("two watch at once")
	}
	stopOther() // which ends nothing
	call()
	stop()
	call()
	if _, ok = s.Watch(second); !ok {
		t.Error("the second cannot watch after the first")
	}
	stop() // once more, which ends nothing either
	call()
	s.Close()
	call()
	if _, ok = s.Watch(third); ok {
		t.Error("a closed plugin can be watched")
	}
	call()
	for i, want := range [][]string{{"begin", "end x", "begin", "end x"}, {"begin", "end x", "closed"}, nil} {
		if got := []*watcher{first, second, third}[i].told; !slices.Equal(got, want) {
			t.Errorf("watcher %d was told %q, want %q", i, got, want)
		}
	}
}
