package slots

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// onTrial puts a guest in the place of 10-a, on probation by these terms, and returns the generation of its files.
func (s *sequence) onTrial(guest string, terms probation.Terms) (generation string) {
	s.Helper()
	s.file("10-a.wasm", guest)
	list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
	s.slots.trials.Found(s.Context(), registry.List{Plugins: list, Complete: true}, func(registry.Description) probation.Terms { return terms })
	s.put(nil)
	return list[0].Generation()
}

// TestOneProbationAfterAnother: what was still to be judged of a version does not end the probation of the next one.
func TestOneProbationAfterAnother(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	s.slots.counts = func(string) probation.Counts { return probation.Counts{} }
	first := s.onTrial("noop", probation.Terms{For: time.Hour})
	s.onTrial("counter", probation.Terms{For: time.Hour})
	s.slots.post(func(ctx context.Context) { s.slots.all["10-a"].judge(ctx, first) })
	if p := s.put(nil).Plugins[0]; p.Probation.IsZero() {
		t.Errorf("on probation it is shown as %+v", p)
	}
}

// TestProbationOfTheActiveVersion: a version that is delivered again after another one could not be loaded, and is active all the
// time, is on probation. The last good one is not.
func TestProbationOfTheActiveVersion(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	s.slots.counts = func(string) probation.Counts { return probation.Counts{} }
	s.onTrial("noop", probation.Terms{})
	for _, guest := range []string{"noop", "counter"} {
		s.onTrial(guest, probation.Terms{For: time.Hour})
		s.onTrial("wrong-signature", probation.Terms{For: time.Hour})
		s.slots.post(func(ctx context.Context) { s.slots.all["10-a"].judge(ctx, s.slots.all["10-a"].judging) })
		generation := s.onTrial(guest, probation.Terms{For: time.Hour})
		is, trial := s.put(nil).Plugins[0], s.slots.trials.Get("10-a", generation)
		if judged := !is.Probation.IsZero(); judged != (guest == "counter") || trial.Open() != judged {
			t.Errorf("%s is on probation until %v, by %+v", guest, is.Probation, trial)
		}
	}
}

// TestNoProbationOfTheLastGoodVersion: a delivery of the version to which the node would go back has nothing to prove. A trial
// that nobody ends would fail at the third start that no orderly stop precedes, be that in a year.
func TestNoProbationOfTheLastGoodVersion(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	s.slots.counts = func(string) probation.Counts { return probation.Counts{} }
	s.onTrial("noop", probation.Terms{})
	s.onTrial("counter", probation.Terms{For: time.Hour})
	good := s.onTrial("noop", probation.Terms{For: time.Hour})
	if open := s.slots.trials.Get("10-a", good); open != nil && open.Open() {
		t.Errorf("the version that is the last good one is on probation: %+v", open)
	}
}

// TestDisabledOnProbation: a plugin that is enabled again is judged by what it does from then on. Its counts begin anew.
func TestDisabledOnProbation(t *testing.T) {
	s := followedBy(t, wasm.Options{Interpret: true})
	var counts probation.Counts // of the owner's goroutine
	s.slots.counts = func(string) probation.Counts { return counts }
	have := func(c probation.Counts) { s.slots.post(func(context.Context) { counts = c }) }
	s.onTrial("noop", probation.Terms{})
	have(probation.Counts{Calls: 1000, Rejections: 10, WriteFailures: 1})
	five := 5
	generation := s.onTrial("counter", probation.Terms{For: time.Hour, MaxRefused: &five})
	s.put(map[string]string{"10-a.json": `{"enabled": false}`})
	have(probation.Counts{})
	s.put(map[string]string{"10-a.json": ""})
	judge := func() status.Plugin {
		s.slots.post(func(ctx context.Context) { s.slots.all["10-a"].judge(ctx, generation) })
		return s.put(nil).Plugins[0]
	}
	if p := judge(); p.Failure != nil || p.Probation.IsZero() {
		t.Errorf("with no call since it was enabled again it is %+v, %v", p.Failure, p.Probation)
	}
	have(probation.Counts{Calls: 20, Refusable: 20, Rejections: 2})
	if p := judge(); p.Failure == nil || !strings.Contains(p.Failure.Error, "it refused 2 of the 20 calls that it could refuse") {
		t.Errorf("after 2 of 20 calls were refused it is %+v", p.Failure)
	}
}

// TestNoVersionBeforeThatLoads: a version that failed its probation does not stay while the one before cannot be loaded, and is
// loaded again if somebody says so meanwhile. Its values end then, and what the one before sets while it is loaded stays.
func TestNoVersionBeforeThatLoads(t *testing.T) {
	for _, retried := range []bool{false, true} {
		s := followedBy(t, wasm.Options{Interpret: true})
		var counts probation.Counts // of the owner's goroutine
		s.slots.counts = func(string) probation.Counts { return counts }
		s.onTrial("noop", probation.Terms{})
		s.file("10-a.json", `{"config": 1}`)
		generation := s.onTrial("noop", probation.Terms{For: time.Hour})
		s.slots.post(func(ctx context.Context) {
			p, d := s.slots.all["10-a"], s.slots.all["10-a"].description
			counts.Openings++
			p.judge(ctx, generation)
			s.slots.tellPresent() // as it is while the version before is told of pods
			if next := (*s.slots.reconciler.Present.Load())["10-a"].Next; next != p.good.Description.Generation() {
				t.Errorf("the values of %q stay, and not those of the version before", next)
			}
			if retried {
				s.slots.trials.Retry(ctx, "10-a")
				p.describe(ctx, d)
			}
			p.fail(ctx, p.last, errors.New("a test"))
		})
		s.slots.settle(t)
		all, err := s.slots.Plugins(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is := all.Plugins[0]; (is.Active != nil) != retried || (is.Failure == nil) != retried {
			t.Errorf("retried %v: it is active as %+v, with %+v", retried, is.Active, is.Failure)
		}
		if failed := (*s.slots.reconciler.Present.Load())["10-a"].Failed; (failed != generation) != retried {
			t.Errorf("retried %v: the values of %q end, and not of %s", retried, failed, generation)
		}
	}
}

// TestStartsOfAVersionThatDoesNotLoad do not count: it is not what ends the proxy.
func TestStartsOfAVersionThatDoesNotLoad(t *testing.T) {
	s, data := followedBy(t, wasm.Options{Interpret: true}), t.TempDir()
	begin := func() {
		list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
		trials := probation.New(data, observe.Discard())
		trials.Begin(t.Context(), list)
		s.slots.post(func(context.Context) { s.slots.trials = trials })
		s.slots.settle(t)
	}
	begin()
	generation := s.onTrial("wrong-signature", probation.Terms{For: time.Hour})
	for range 5 {
		begin()
		s.slots.post(func(ctx context.Context) {
			p := s.slots.all["10-a"]
			p.fail(ctx, p.next, p.next.reason)
			s.slots.trials.Save(ctx)
		})
		s.slots.settle(t)
		if trial := s.slots.trials.Get("10-a", generation); !trial.Open() {
			t.Fatalf("%+v", trial.Failure)
		}
	}
}
