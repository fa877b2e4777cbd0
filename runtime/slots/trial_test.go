package slots

import (
	"context"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// onTrial puts a guest in the place of 10-a, on probation for this long, and returns the generation of its files.
func (s *sequence) onTrial(guest string, length time.Duration) (generation string) {
	s.Helper()
	s.file("10-a.wasm", guest)
	list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
	s.slots.trials.Found(s.Context(), registry.List{Plugins: list, Complete: true}, func(registry.Description) probation.Terms {
		return probation.Terms{For: length}
	})
	s.put(nil)
	return list[0].Generation()
}

// TestOneProbationAfterAnother: what was still to be judged of a version does not end the probation of the next one.
func TestOneProbationAfterAnother(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	s.slots.counts = func(string) probation.Counts { return probation.Counts{} }
	first := s.onTrial("noop", time.Hour)
	s.onTrial("counter", time.Hour)
	s.slots.post(func(ctx context.Context) { s.slots.all["10-a"].judge(ctx, first) })
	if p := s.put(nil).Plugins[0]; p.Probation.IsZero() {
		t.Errorf("on probation it is shown as %+v", p)
	}
}

// TestNoProbationOfTheLastGoodVersion: a delivery of the version to which the node would go back has nothing to prove. A trial
// that nobody ends would fail at the third start that no orderly stop precedes, be that in a year.
func TestNoProbationOfTheLastGoodVersion(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	s.slots.counts = func(string) probation.Counts { return probation.Counts{} }
	s.onTrial("noop", 0)
	s.onTrial("counter", time.Hour)
	good := s.onTrial("noop", time.Hour)
	if open := s.slots.trials.Get("10-a", good); open != nil && open.Open() {
		t.Errorf("the version that is the last good one is on probation: %+v", open)
	}
}
