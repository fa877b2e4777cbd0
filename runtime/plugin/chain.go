package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Member is a plugin's place in a Chain.
type Member struct {
	ID      string // base name of its file; the order of a chain is the order of ids
	Plugin  Plugin
	Policy  FailurePolicy
	Timeout time.Duration // wall time of one call; 0 leaves it to the context
	Metered bool          // it looks at the call's Budget by itself; others get a context that ends with it
	Breaker *Breaker      // the plugin's; nil if it is called whatever it does
	Hooks   abi.HookSet   // those of its manifest that the operator left it

	// Capabilities are those that its manifest declares and the operator grants.
	Capabilities abi.CapabilitySet
	Rights       Rights // why it has no others
	// KeepsPodLimits says that the plugin writes pods' cgroups itself, as koordlet does, so that
	// its limits are not held to theirs.
	KeepsPodLimits bool
	Match          Matches // which pods and containers it is called for; nil: all
	// Bounds is the operator's match, as BoundsOf returns it: the plugin finds and changes no other pods and
	// containers. nil: all.
	Bounds *abi.Match
	Shadow *Shadow // another version, which is called before it; nil: there is none
	DryRun bool    // what it wants is an event and not done, and it takes none of the time of the call's other plugins
}

// Subject is an event that changes can be applied to.
type Subject interface {
	Event
	// Apply carries changes out, on the event and on what will be sent to the
	// backend. The next plugin sees them.
	Apply([]Owned)
	// Exempt reports whether no plugin can keep the call from going on: refusals and failures
	// are ignored, whatever the policy.
	Exempt() bool
	observe.Subject
}

// Chain runs its members in order. It is immutable and safe for concurrent use.
type Chain struct {
	observer observe.Observer
	cgroups  int    // their version, 1 or 2; 0: there are none that plugins may write to
	shadows  *Chain // calls shadows
	members  map[abi.Hook][]Member
	hooks    abi.HookSet
}

// NewChain returns the chain of members in the order given. The version is that of the
// node's cgroups, 1 or 2; 0: there are none that plugins may write to.
func NewChain(observer observe.Observer, cgroupVersion int, all ...Member) *Chain {
	c := &Chain{observer: observer, cgroups: cgroupVersion, members: map[abi.Hook][]Member{}}
	c.shadows = &Chain{observer: ShadowObserver(observer), cgroups: cgroupVersion}
	for _, m := range all {
		c.hooks |= m.Hooks
		for _, info := range abi.Hooks {
			if m.Hooks.Has(info.Hook) {
				c.members[info.Hook] = append(c.members[info.Hook], m)
			}
		}
	}
	return c
}

// Hooks returns the hooks that any member wants.
func (c *Chain) Hooks() abi.HookSet { return c.hooks }

// Refuses reports whether a member with policy Fail wants hook h, so that a
// request that cannot be shown to it must not go on: whether its Match accepts
// that, nobody knows.
func (c *Chain) Refuses(h abi.Hook) (plugin string, yes bool) {
	for _, m := range c.members[h] {
		if m.Policy == Fail {
			return m.ID, true
		}
	}
	return "", false
}

// Dispatch calls every member that wants the subject's hook and whose Match accepts it, in
// order, and applies what each wants before the next one is called. It returns the changes
// with their owners. The members share the budget. The error is an *Error: a member refused
// the call, or failed under policy Fail, and the subject is not exempt; or it is ctx's, when the
// caller went away, which is nobody's failure.
func (c *Chain) Dispatch(ctx context.Context, budget *Budget, s Subject) ([]Owned, error) {
	var (
		done    []Owned
		owned   owners
		members = c.members[s.Hook()]
	)
	for i := range members {
		m := &members[i]
		if !m.Match.Accept(s) {
			continue
		}
		adj := m.NewAdjustment(s, c.cgroups)
		adj.owned = owned
		err := c.callMember(ctx, budget, m, s, adj)
		if Gone(ctx) {
			return done, context.Canceled // ctx may be about to hear of it
		}
		if err = c.resolve(ctx, m, s, adj, err); err != nil {
			return done, err
		}
		if i+1 < len(members) { // for the members after it
			owned.record(adj.changes)
		}
		if len(adj.changes) > 0 && c.observer.Wants(observe.KindFieldChanged) { // while the event still has the secrets that they take from it
			about := s.About()
			for i := range adj.changes {
				changed := adj.changed(s, &adj.changes[i].Change)
				changed.Plugin, changed.Object = m.ID, about
				c.observer.Observe(ctx, changed)
			}
		}
		s.Apply(adj.changes)
		if done == nil {
			done = slices.Clip(adj.changes)
		} else {
			done = append(done, adj.changes...)
		}
	}
	return done, nil
}

// callMember calls one member within its time, and its shadow before, if its breaker lets it.
func (c *Chain) callMember(ctx context.Context, budget *Budget, m *Member, s Subject, adj *Adjustment) error {
	period, err := m.Breaker.enter()
	called := err == nil
	var shadow *shadowed
	if called {
		shadow = c.callShadow(ctx, budget, m.Shadow, s, adj.owned)
	}
	start := budget.call()
	if called {
		err = c.run(ctx, budget, m, s, adj, start)
		if err != nil && adj.keepFinished(ctx, c.observer, err) {
			err = nil
		}
		if err == nil {
			err = adj.permitAll()
		}
		if err == nil && adj.rejection != nil {
			err = adj.rejection
		}
		if m.DryRun {
			err = c.tell(ctx, m, s, adj, err)
		}
		err = adj.redactError(err)
	}
	end := time.Now()
	if called {
		m.Breaker.leave(ctx, period, adj.hook, judgeHealth(ctx, budget, budget.end(start, end), adj, err), err)
	}
	if c.observer.Wants(observe.KindHookCalled) {
		adj.called = observe.HookCalled{
			Plugin: m.ID, Hook: adj.hook, Subject: s, Start: start, Duration: end.Sub(start),
			Fuel: adj.called.Fuel, HostCalls: adj.called.HostCalls, Err: err,
		}
		switch {
		case err == nil:
			adj.called.Outcome, adj.called.Changes = observe.OK, len(adj.changes)
		case !called:
			adj.called.Outcome = observe.NotCalled
		case errors.As(err, new(*Rejection)):
			adj.called.Outcome = observe.Rejected
		default:
			adj.called.Outcome, adj.called.Class = observe.Failed, classOf(ctx, adj, err)
		}
		c.observer.Observe(ctx, &adj.called)
	}
	if !Gone(ctx) && !errors.Is(err, ErrBusy) {
		shadow.compare(ctx, adj, err)
	}
	return err
}

// run calls the member's plugin. A panic is an error.
func (c *Chain) run(ctx context.Context, budget *Budget, m *Member, ev Event, adj *Adjustment, start time.Time) (err error) {
	if ctx.Err() != nil {
		return fmt.Errorf("not called: %w", context.Cause(ctx))
	}
	if err := budget.errAt(start); err != nil {
		return fmt.Errorf("not called: %w", err)
	}
	var end time.Time // of the call's context; zero if it ends with the caller's alone
	var cause *TimeError
	if !m.Metered {
		if end = budget.End(); !end.IsZero() {
			cause = budget.exhausted(end)
		}
	}
	if own := start.Add(m.Timeout); m.Timeout > 0 && (end.IsZero() || own.Before(end)) {
		end, cause = own, &TimeError{"its time for one call", m.Timeout}
	}
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, end, cause)
		defer cancel()
	}
	defer func() {
		if r := recover(); r != nil {
			c.observer.Observe(ctx, &observe.Panicked{
				During: "a hook", Plugin: m.ID, Hook: ev.Hook(), Panic: adj.Redact(fmt.Sprint(r)), Stack: string(debug.Stack()),
			})
			err = &ClassError{observe.ClassTrap, fmt.Errorf("panic: %s", adj.Sanitize(fmt.Sprint(r), maxReason))}
		}
		if err != nil && ctx.Err() != nil {
			ran := time.Since(start).Round(time.Millisecond)
			switch limit := new(TimeError); {
			case !errors.As(context.Cause(ctx), &limit):
			case errors.Is(err, limit):
				err = fmt.Errorf("%w; it ran %v", err, ran)
			default:
				err = fmt.Errorf("%w; it ran %v: %w", limit, ran, err)
			}
		}
	}()
	if m.DryRun { // to the call's other plugins it is waiting
		defer budget.Wait()()
		budget = budget.beside()
	}
	return m.Plugin.Call(ctx, budget, ev, adj)
}

// Gone reports whether ctx was canceled: the caller went away.
func Gone(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// resolve turns a member's error into the call's error, or into nothing and an
// empty adjustment where the policy says so, or the subject is exempt.
func (c *Chain) resolve(ctx context.Context, m *Member, s Subject, adj *Adjustment, err error) error {
	if adj.conflict != nil {
		c.observer.Observe(ctx, &observe.Conflict{
			Plugin: m.ID, First: adj.conflict.First, Hook: s.Hook(), Object: s.About(),
			Field: adj.Redact(adj.conflict.Change.Target()), Dropped: err != nil,
		})
	}
	if err == nil {
		return nil
	}
	adj.changes = nil
	rejected := errors.As(err, new(*Rejection))
	if s.Hook().Info().Phase == abi.Before && (rejected || m.Policy == Fail) {
		if !rejected {
			if adj.conflict != nil && !errors.As(err, new(*ConflictError)) { // a guest knows no more of a conflict than a number
				err = fmt.Errorf("%w; before, %w", err, adj.conflict)
			}
			err = adj.redactError(err)
		}
		refusal := &Error{Plugin: m.ID, Hook: s.Hook(), Err: err}
		if !s.Exempt() {
			return refusal
		}
		c.observer.Observe(ctx, refusal.Exempted(s.About()))
		return nil
	}
	if errors.As(err, new(*OpenError)) {
		return nil // the breaker has said so, once
	}
	c.observer.Observe(ctx, &observe.PluginFailed{Plugin: m.ID, Hook: s.Hook(), Object: s.About(), Err: err})
	return nil
}

// changed is the event of a change that is yet to be applied to ev.
func (a *Adjustment) changed(ev Event, c *Change) *observe.FieldChanged {
	e := &observe.FieldChanged{Hook: a.hook, Field: a.Redact(c.Target()), Value: c.value(a.Sanitize)}
	switch c.Op { // of lists, sets and files nothing is shown
	case SetInt64:
		if n, errno := ev.Int64(c.Object, c.Field); errno == abi.OK {
			e.Previous = strconv.FormatInt(n, 10)
		}
	case SetText:
		text, _ := ev.Text(c.Object, c.Field)
		e.Previous = a.Sanitize(text, maxReason)
	case SetEntry, DeleteEntry:
		// Only those of resources are shown: a pod's annotations may hold its whole manifest, and a plugin may be there to
		// remove them.
		text, _ := ev.Lookup(c.Object, c.Field, c.Key)
		if _, resource := c.resource(); resource || text == "" {
			e.Previous = a.Sanitize(text, maxReason)
		} else {
			e.Previous = Redacted
		}
	}
	if c.Object >= abi.FirstHandle {
		name, id := abi.PodName, abi.PodID
		if c.Of == abi.Container {
			name, id = abi.ContainerName, abi.ContainerID
		}
		e.OtherName, _ = ev.Text(c.Object, name)
		e.OtherID, _ = ev.Text(c.Object, id)
	}
	return e
}
