package plugin

import (
	"errors"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// watcher notes what it is told. It answers each question if it is to.
type watcher struct {
	told    []string
	away    bool
	answers bool
}

func (w *watcher) Begin(Event, *Adjustment) CallWatcher {
	if w.away {
		return nil
	}
	w.told = append(w.told, "begin")
	return w
}
func (w *watcher) Closed() { w.told = append(w.told, "closed") }
func (w *watcher) Ask(q *Question) bool {
	w.told = append(w.told, "ask "+q.Function.Name)
	return w.answers
}
func (w *watcher) Answered(q *Question) { w.told = append(w.told, "answered") }
func (w *watcher) End(err error)        { w.told = append(w.told, "end "+err.Error()) }

// Each watcher is told of calls from when it began to watch until it stops; the first that answers is the last that is asked.
func TestWatches(t *testing.T) {
	var s Watches
	if c := s.Begin(nil, nil); c != nil {
		t.Errorf("nobody watches, and %v is told", c)
	}
	call := func() {
		c := s.Begin(nil, nil)
		if c == nil {
			return
		}
		q := &Question{Function: &abi.Functions[0]}
		c.Ask(q)
		c.Answered(q)
		c.End(errors.New("x"))
	}
	first, second, away := &watcher{answers: true}, &watcher{}, &watcher{away: true}
	s.Watch(away)
	call()
	stop := s.Watch(first)
	s.Watch(second)
	call()
	stop()
	call()
	s.Close()
	call()
	s.Watch(first)
	if want := []string{"begin", "ask get", "answered", "end x", "closed"}; !slices.Equal(first.told, want) {
		t.Errorf("the first was told %q, want %q", first.told, want)
	}
	if want := []string{"begin", "answered", "end x", "begin", "ask get", "answered", "end x", "closed"}; !slices.Equal(second.told, want) {
		t.Errorf("the second was told %q, want %q", second.told, want)
	}
	if want := []string{"closed"}; !slices.Equal(away.told, want) {
		t.Errorf("the one that looks away was told %q, want %q", away.told, want)
	}
}
