package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Bounds of what a Shadow keeps.
const (
	maxShadowCalls = 100 // that were not the same: the last ones
	maxShadowRows  = 16  // of one call
	maxShadowText  = 256 // bytes of a target, and of a value
)

// Shadow is another version of a plugin, its twin. A Chain calls it just before the twin, with the same event, and compares
// what the two want. What the shadow wants is not done: it changes and refuses nothing. It is not called in Standalone
// hooks, such as Tick, nor where its twin is not called. It is safe for concurrent use.
type Shadow struct {
	member   Member
	sample   int
	observer observe.Observer

	mu     sync.Mutex
	report ShadowReport // whose calls are a ring
	oldest int          // of the calls, once there are maxShadowCalls
}

// ShadowReport is what came of the calls of a shadow since it was loaded.
type ShadowReport struct {
	Plugin   string                           `json:"plugin"`
	Outcomes map[observe.ShadowOutcome]uint64 `json:"outcomes"`
	Calls    []ShadowCall                     `json:"calls"` // the last 100 that were not the same, the oldest first
}

// ShadowCall is a call in which a shadow did not want the same as its twin. Its texts hold no secret.
type ShadowCall struct {
	Time    time.Time             `json:"time"`
	Hook    string                `json:"hook"`
	Object  string                `json:"object"` // NAMESPACE/POD, with /CONTAINER, or an image
	Outcome observe.ShadowOutcome `json:"outcome"`
	Error   string                `json:"error,omitempty"` // why the shadow failed
	Rows    []Changed             `json:"rows,omitempty"`  // what differs, by target
	More    int                   `json:"more,omitempty"`  // rows that are left out
}

// Changed is a target that two versions of a plugin want otherwise. Of a shadow, values are those of logs: those of environment
// variables are hidden.
type Changed struct {
	Target string  `json:"target"`
	Was    *string `json:"was"` // what the twin wants, or the recorded version did; nil: no change
	Is     *string `json:"is"`  // what the other version wants; nil: no change
}

// NewShadow returns a shadow, which is called as the member says for so many percent of pods. The member has the twin's id.
func NewShadow(m Member, sample int, observer observe.Observer) *Shadow {
	return &Shadow{member: m, sample: sample, observer: observer, report: ShadowReport{
		Plugin: m.ID,
		Outcomes: map[observe.ShadowOutcome]uint64{
			observe.ShadowSame: 0, observe.ShadowDifferent: 0, observe.ShadowFailed: 0, observe.ShadowRefused: 0,
		},
	}}
}

// ShadowObserver passes on to an observer what it is to learn of a shadow beside its outcomes: what it logs, under a name of
// its own, and panics of the proxy's code.
func ShadowObserver(to observe.Observer) observe.Observer { return shadowObserver{to} }

type shadowObserver struct{ to observe.Observer }

func (o shadowObserver) Wants(k observe.Kind) bool {
	return k >= observe.KindPluginLog(observe.Debug) && o.to.Wants(k)
}

func (o shadowObserver) Observe(ctx context.Context, e observe.Event) {
	switch e := e.(type) {
	case *observe.PluginLog:
		line := *e
		line.Plugin += " (shadow)"
		o.to.Observe(ctx, &line)
	case *observe.Panicked:
		o.to.Observe(ctx, e)
	}
}

// Report returns what came of the calls by now.
func (s *Shadow) Report() ShadowReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Outcomes = maps.Clone(r.Outcomes)
	r.Calls = slices.Concat([]ShadowCall{}, r.Calls[s.oldest:], r.Calls[:s.oldest])
	return r
}

// Breaker returns the shadow's own; nil if it has none.
func (s *Shadow) Breaker() *Breaker { return s.member.Breaker }

// shadowed is a call of a shadow that has ended, and that of its twin is yet to come.
type shadowed struct {
	of      *Shadow
	subject Subject
	adj     *Adjustment
	err     error
}

// callShadow calls the member's shadow, within its share of the call's time. It returns nil if there is none or nothing to
// compare: calls that have no time left, or for which no guest was free, tell nothing of the shadow.
func (c *Chain) callShadow(ctx context.Context, budget *Budget, of *Shadow, s Subject, owned owners) *shadowed {
	if of == nil || s.Hook().Info().Phase == abi.Standalone {
		return nil
	}
	drawn := rand.IntN(100)
	if uid, _ := s.Text(abi.Pod, abi.PodUID); uid != "" { // the same for all calls of the pod
		h := fnv.New32a()
		h.Write([]byte(uid))
		drawn = int(h.Sum32() % 100)
	}
	if drawn >= of.sample {
		return nil
	}
	m := &of.member
	called := &shadowed{of: of, subject: s, adj: m.NewAdjustment(s, c.cgroups)}
	called.adj.owned = owned
	if !m.Hooks.Has(s.Hook()) || !m.Match.Accept(s) {
		return called // it wants nothing
	}
	share, ended := budget.forShadow()
	if share == nil {
		return nil
	}
	defer ended()
	ctx, cancel := context.WithDeadlineCause(ctx, share.last, share.exhausted(share.last))
	defer cancel()
	called.err = c.shadows.callMember(ctx, share, m, s, called.adj)
	if errors.Is(called.err, ErrBusy) {
		return nil
	}
	return called
}

// compare compares what the shadow wanted with what its twin wants, before that is applied.
func (d *shadowed) compare(ctx context.Context, twin *Adjustment, err error) {
	if d == nil {
		return
	}
	was, is := wishes(twin, err), wishes(d.adj, d.err)
	targets := make([]slot, 0, len(was)+len(is))
	for target, wish := range was {
		if other, also := is[target]; !also || !wish.same(other) {
			targets = append(targets, target)
		}
	}
	for target := range is {
		if _, also := was[target]; !also {
			targets = append(targets, target)
		}
	}
	hook, about := d.subject.Hook(), d.subject.About()
	call := ShadowCall{Time: d.subject.Time(), Hook: hook.String(), Object: about.Image, Outcome: observe.ShadowSame}
	if about.Pod != "" {
		call.Object = strings.TrimSuffix(about.Namespace+"/"+about.Pod+"/"+about.Container, "/")
	}
	switch refused := errors.As(d.err, new(*Rejection)); {
	case d.err != nil && !refused:
		call.Outcome = observe.ShadowFailed
	case refused && len(targets) > 0:
		call.Outcome = observe.ShadowRefused
	case len(targets) > 0:
		call.Outcome = observe.ShadowDifferent
	}
	if call.Outcome != observe.ShadowSame {
		slices.SortFunc(targets, func(a, b slot) int {
			return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.field, b.field), cmp.Compare(a.key, b.key))
		})
		d.describe(&call, twin, targets, was, is)
	}
	s := d.of
	s.mu.Lock()
	s.report.Outcomes[call.Outcome]++
	switch {
	case call.Outcome == observe.ShadowSame:
	case len(s.report.Calls) < maxShadowCalls:
		s.report.Calls = append(s.report.Calls, call)
	default:
		s.report.Calls[s.oldest] = call
		s.oldest = (s.oldest + 1) % maxShadowCalls
	}
	s.mu.Unlock()
	s.observer.Observe(ctx, &observe.ShadowCalled{Plugin: s.member.ID, Hook: hook, Object: about, Outcome: call.Outcome})
}

// shadowWish is what a plugin wants of a target: a change, or else an end of the call.
type shadowWish struct {
	change *Change
	end    string
}

// shadowWishes are what a plugin wants in a call, by what a change is about. The zero slot stands for how the call ended.
type shadowWishes map[slot]shadowWish

func (w shadowWish) same(o shadowWish) bool {
	if w.change == nil || o.change == nil {
		return w.change == o.change && w.end == o.end
	}
	return w.change.Op == o.change.Op && w.change.Int == o.change.Int && w.change.Text == o.change.Text
}

// wishes are what a plugin wants in all, by target. The changes of a call that fails or is refused do not count.
func wishes(adj *Adjustment, err error) shadowWishes {
	var refused *Rejection
	switch {
	case errors.As(err, &refused):
		return shadowWishes{{}: {end: fmt.Sprintf("refused with code %d: %s", refused.Code, refused.Reason)}}
	case err != nil:
		return shadowWishes{{}: {end: "failed"}}
	}
	all := make(shadowWishes, len(adj.changes))
	for i := range adj.changes {
		c := &adj.changes[i].Change
		all[slot{c.owner(), c.Field, c.Key}] = shadowWish{change: c}
	}
	return all
}

// describe writes down what differs, for people.
func (d *shadowed) describe(call *ShadowCall, twin *Adjustment, targets []slot, was, is shadowWishes) {
	secrets, _ := d.subject.Secrets(abi.AllCapabilities, 0)
	for _, all := range []shadowWishes{was, is} {
		for _, wish := range all {
			if wish.change != nil && wish.change.isEnv() {
				secrets = append(secrets, wish.change.Text)
			}
		}
	}
	redactor := NewRedactor(secrets...)
	if call.Outcome == observe.ShadowFailed {
		call.Error = redactor.Text(d.adj.Sanitize(d.err.Error(), maxRefused))
	}
	show := func(adj *Adjustment, all shadowWishes, target slot, row *Changed) *string {
		wish, wanted := all[target]
		if !wanted {
			return nil
		}
		value := wish.end
		if c := wish.change; c != nil {
			row.Target, value = adj.Redact(c.Target()), c.value(adj.Sanitize)
			if name := adj.changed(d.subject, c).OtherName; name != "" && !c.Own {
				row.Target += " of " + name
			}
			if c.Op == DeleteEntry || c.Op == DeleteElement {
				value = "(deleted)"
			}
		}
		value = Printable(redactor.Text(value), maxShadowText)
		return &value
	}
	for _, target := range targets[:min(len(targets), maxShadowRows)] {
		row := Changed{Target: "outcome"}
		row.Was, row.Is = show(twin, was, target, &row), show(d.adj, is, target, &row)
		row.Target = Printable(redactor.Text(row.Target), maxShadowText)
		call.Rows = append(call.Rows, row)
	}
	call.More = len(targets) - len(call.Rows)
}
