package slots

import (
	"context"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// judgeEvery is how often a version on probation is judged.
const judgeEvery = time.Second

// found has new versions put on probation that a delivery to the plugin directory has asked it for.
func found(ctx context.Context, trials *probation.Trials, list registry.List, pluginDir string) {
	trials.Found(ctx, list, func(d registry.Description) (terms probation.Terms) {
		terms.For, terms.MaxRefused = delivery.Directory(pluginDir).Probation(d.ID, d.Settings)
		return terms
	})
}

// failedTrial is what is wrong with files whose version has failed its probation.
type failedTrial struct {
	id      string
	failure probation.Failure
}

func (f *failedTrial) Error() string {
	return fmt.Sprintf("it failed its probation at %s: %s; it is not loaded again: deliver another version or other settings, or run  wasmproxy plugin retry %s",
		f.failure.At.UTC().Format(time.RFC3339), f.failure.Reason, f.id)
}

// judged returns the description with a Problem if its version has failed its probation: files that are bad change nothing.
func judged(trials *probation.Trials, d registry.Description) registry.Description {
	if t := trials.Get(d.ID, d.Generation()); t != nil && t.Failure != nil && d.Problem == nil {
		d.Problem = &failedTrial{plugin.Name(d.ID), *t.Failure}
	}
	return d
}

// onProbation reports whether the active version is on probation, which begins with the first call of this.
func (s *Slots) onProbation(ctx context.Context, p *slot) bool {
	generation := p.active.description.Generation()
	t := s.trials.Get(p.id, generation)
	if t == nil || !t.Open() {
		return false
	}
	if p.judging == generation {
		return true
	}
	s.trials.Activate(p.id, generation, s.counts(p.id))
	if t.Ends.IsZero() {
		s.jobs.Go(func() { s.trials.Save(ctx) })
		s.observer.Observe(ctx, &observe.ProbationBegun{Plugin: p.id, Ends: s.trials.Get(p.id, generation).Ends})
	}
	p.judging = generation
	s.judgeLater(p, generation)
	return true
}

func (s *Slots) judgeLater(p *slot, generation string) {
	time.AfterFunc(judgeEvery, func() { s.post(func(ctx context.Context) { s.judge(ctx, p, generation) }) })
}

// judge has a version go on, pass or fail that is on probation.
func (s *Slots) judge(ctx context.Context, p *slot, generation string) {
	there := p.active != nil && p.active.description.Generation() == generation
	if there && heeded(s.trials, p.active.description, s.config.PluginDir) {
		s.jobs.Go(func() { s.trials.Save(ctx) })
	}
	t := s.trials.Get(p.id, generation)
	if !there || t == nil || !t.Open() { // another version has come, or a bypass
		p.judging = ""
		return
	}
	switch reason := t.Judge(s.counts(p.id)); {
	case reason != "":
		s.trials.Fail(ctx, p.id, generation, reason)
		s.goBack(ctx, p)
	case time.Now().Before(t.Ends):
		s.judgeLater(p, generation)
		return
	default:
		s.trials.Pass(p.id, generation)
		s.observer.Observe(ctx, &observe.ProbationPassed{Plugin: p.id})
		s.remember(ctx, p)
	}
	p.judging = ""
	s.jobs.Go(func() { s.trials.Save(ctx) })
}

// heeded takes over from the plugin directory how much a version on probation may refuse, and reports whether that is new: a
// delivery may change it during the probation.
func heeded(trials *probation.Trials, d registry.Description, pluginDir string) bool {
	length, most := delivery.Directory(pluginDir).Probation(d.ID, d.Settings)
	return length > 0 && trials.Refusing(d.ID, d.Generation(), most)
}

// goBack has the version before be active again: the last good one, or none.
func (s *Slots) goBack(ctx context.Context, p *slot) {
	p.describe(judged(s.trials, p.description))
	s.discard(p.next)
	p.next, s.changed = nil, true
	switch {
	case p.good == nil || p.good.Description.Disabled:
		s.unload(p)
	case p.good.Description.Source() == p.active.source:
		s.share(ctx, p, p.good.Description)
	default:
		p.last = s.version(s.lastGood.Copy(p.good.Description))
		p.last.good = true
	}
}

// Retry has the version of a plugin loaded once more that failed its probation. The error says that there is none.
func (s *Slots) Retry(ctx context.Context, id string) error {
	if !s.trials.Retry(ctx, id) {
		return fmt.Errorf("plugin %s has no version that failed its probation", plugin.Name(id))
	}
	s.post(func(ctx context.Context) { s.update(ctx, *s.files.Load()) })
	return nil
}
