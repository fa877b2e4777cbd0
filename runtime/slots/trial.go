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
	trials.Found(ctx, list, func(d registry.Description) probation.Terms { return terms(d, pluginDir) })
}

// terms are those of the delivery that has brought a version; a For of 0: it has no probation.
func terms(d registry.Description, pluginDir string) (of probation.Terms) {
	of.For, of.MaxRefused = delivery.Directory(pluginDir).Probation(d.ID, d.Settings)
	return of
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

func (p *slot) judgeLater(generation string) {
	time.AfterFunc(judgeEvery, func() { p.owner.post(func(ctx context.Context) { p.judge(ctx, generation) }) })
}

// judge has a version go on, pass or fail that is on probation.
func (p *slot) judge(ctx context.Context, generation string) {
	s := p.owner
	if p.judging != generation { // another one is judged by now
		return
	}
	there := p.active != nil && p.active.description.Generation() == generation
	if there { // a delivery may change the terms during the probation
		if now := terms(p.active.description, s.config.PluginDir); now.For > 0 {
			s.trials.Change(p.id, generation, now)
		}
	}
	t := s.trials.Get(p.id, generation)
	begun := t != nil && t.Open() && !t.Ends.IsZero()
	if !there || !begun { // another version has come, or a bypass; or this one anew, whose probation is about to begin
		p.judging = ""
		return
	}
	switch reason := t.Judge(s.counts(p.id)); {
	case reason != "": // the version before becomes active again: the last good one, or none
		s.trials.Fail(ctx, p.id, generation, reason)
		p.note(judged(s.trials, p.description))
		p.next.discard()
		p.next, s.changed = nil, true
		shares := p.good != nil && p.good.Description.Source() == p.active.source
		if p.good != nil && !shares && p.good.Description.Digest != "" {
			// Its module may be lost: the file has another content, and there is no copy.
			if _, err := s.lastGood.Copy(p.good.Description).ReadModule(); err != nil {
				p.good = nil
			}
		}
		switch {
		case p.good == nil || p.good.Description.Disabled:
			p.unload()
		case shares:
			p.share(ctx, p.good.Description)
		default:
			p.restore()
		}
	case time.Now().Before(t.Ends):
		p.judgeLater(generation)
		return
	default:
		s.trials.Pass(p.id, generation)
		s.observer.Observe(ctx, &observe.ProbationPassed{Plugin: p.id})
		p.remember(ctx)
	}
	p.judging = ""
}

// Retry has the version of a plugin loaded once more that failed its probation. The error says that there is none.
func (s *Slots) Retry(ctx context.Context, id string) error {
	if !s.trials.Retry(ctx, id) {
		return fmt.Errorf("plugin %s has no version that failed its probation", plugin.Name(id))
	}
	s.post(func(ctx context.Context) { s.update(ctx, *s.files.Load()) })
	return nil
}
