package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// timed is a subject that knows its time.
type timed struct{ *subject }

func (timed) Time() time.Time { return time.Unix(0, 0) }

// withShadow is a member with a shadow.
func withShadow(m plugin.Member, p plugin.Plugin, o observe.Observer) plugin.Member {
	of := m
	of.Plugin, of.Policy, of.Metered = p, plugin.Ignore, true
	m.Shadow = plugin.NewShadow(of, 100, o)
	return m
}

// sleeper is a shadow that takes some time, or what it has.
func sleeper(d time.Duration, share *time.Duration) budgeted {
	return func(ctx context.Context, own *plugin.Budget) error {
		end, _ := ctx.Deadline()
		*share = time.Until(end)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// All shadows of a call have a quarter of its time, and the plugins have all of their own, whatever shadows do.
func TestShadowsHaveAShareOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shares [3]time.Duration
		var twins []time.Duration
		full := func(_ context.Context, b *plugin.Budget) error {
			twins = append(twins, b.End().Sub(b.Running()))
			time.Sleep(100 * time.Millisecond)
			return nil
		}
		var members []plugin.Member
		for i, takes := range []time.Duration{400 * time.Millisecond, time.Hour, 0} {
			m := member(fmt.Sprint(i), plugin.Fail, nil)
			m.Plugin, m.Metered, m.Timeout = budgeted(full), true, 0
			members = append(members, withShadow(m, sleeper(takes, &shares[i]), observe.Discard()))
		}
		start := time.Now()
		_, err := plugin.NewChain(observe.Discard(), 2, members...).Dispatch(t.Context(), plugin.NewBudget(2*time.Second), timed{&subject{hook: abi.PreCreateContainer}})
		if err != nil {
			t.Fatal(err)
		}
		if want := [3]time.Duration{500 * time.Millisecond, 100 * time.Millisecond, 0}; shares != want {
			t.Errorf("the shadows had %v, want %v", shares, want)
		}
		if want := []time.Duration{2 * time.Second, 1900 * time.Millisecond, 1800 * time.Millisecond}; !slices.Equal(twins, want) {
			t.Errorf("the plugins had %v, want %v", twins, want)
		}
		if took := time.Since(start); took != 800*time.Millisecond {
			t.Errorf("the call took %v", took)
		}
	})
}

// A shadow has no part in a call: no change, no claim on a value, no refusal, no failure and no event of its own.
func TestShadowHasNoPartInACall(t *testing.T) {
	for _, test := range []struct {
		name    string
		shadow  function
		outcome observe.ShadowOutcome
	}{
		{"same", set(abi.CPUShares, 100), observe.ShadowSame},
		{"the last of two values", func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			return errors.Join(set(abi.CPUShares, 7)(ctx, ev, adj), set(abi.CPUShares, 100)(ctx, ev, adj))
		}, observe.ShadowSame},
		{"another value", set(abi.CPUShares, 7), observe.ShadowDifferent},
		{"another target", set(abi.MemoryLimit, 7), observe.ShadowDifferent},
		{"panic", func(context.Context, plugin.Event, *plugin.Adjustment) error { panic("no") }, observe.ShadowFailed},
		{"failure", func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("no") }, observe.ShadowFailed},
		{"refusal", func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(0, "no") }, observe.ShadowRefused},
	} {
		var heard observe.Recorder
		a := withShadow(member("10-a", plugin.Fail, set(abi.CPUShares, 100)), test.shadow, &heard)
		s := &subject{hook: abi.PreCreateContainer}
		chain := plugin.NewChain(&heard, 2, a, member("20-b", plugin.Fail, set(abi.MemoryLimit, 8)))
		owned, err := chain.Dispatch(t.Context(), plugin.NewBudget(time.Minute), timed{s})
		if err != nil || len(owned) != 2 || len(s.applied) != 2 {
			t.Errorf("%s: owned %v, applied %v, error %v", test.name, owned, s.applied, err)
		}
		events := heard.Take()
		outcomes, calls := observe.All[*observe.ShadowCalled](events), observe.All[*observe.HookCalled](events)
		if len(outcomes) != 1 || outcomes[0].Outcome != test.outcome || outcomes[0].Plugin != "10-a" || len(calls) != 2 {
			t.Errorf("%s: outcomes %+v, %d calls", test.name, outcomes, len(calls))
		}
		if r := a.Shadow.Report(); r.Outcomes[test.outcome] != 1 {
			t.Errorf("%s: the report is %+v", test.name, r)
		}
	}
}

// A plugin that refuses or fails, where its shadow does not, differs. Two that refuse for one reason are the same.
func TestShadowOfAPluginThatRefuses(t *testing.T) {
	refuse := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(0, "no") }
	fail := func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broken") }
	for _, test := range []struct {
		twin, shadow function
		outcome      observe.ShadowOutcome
		was          string
	}{
		{refuse, refuse, observe.ShadowSame, ""},
		{refuse, set(abi.CPUShares, 7), observe.ShadowDifferent, "refused with code 9: no"},
		{fail, set(abi.CPUShares, 7), observe.ShadowDifferent, "failed"},
		{fail, fail, observe.ShadowFailed, ""},
	} {
		m := withShadow(member("10-a", plugin.Fail, test.twin), test.shadow, observe.Discard())
		_, err := plugin.NewChain(observe.Discard(), 2, m).Dispatch(t.Context(), nil, timed{&subject{hook: abi.PreCreateContainer}})
		r := m.Shadow.Report()
		if err == nil || r.Outcomes[test.outcome] != 1 {
			t.Errorf("error %v, report %+v", err, r)
		}
		if test.was != "" && (len(r.Calls) != 1 || len(r.Calls[0].Rows) != 2 || *r.Calls[0].Rows[0].Was != test.was || r.Calls[0].Rows[0].Is != nil) {
			t.Errorf("want was %q; the report is %+v", test.was, r)
		}
	}
}

// A shadow is not called where its plugin's breaker is open, and a call for which no instance of the plugin was free tells
// nothing of it.
func TestShadowOfAPluginThatIsNotCalled(t *testing.T) {
	const calls, faults = 8, 5 // after which the breaker opens
	for _, test := range []struct {
		fails          error
		shown, counted int
	}{
		{errors.New("broken"), faults, faults},
		{plugin.ErrBusy, calls, 0},
	} {
		shown := 0
		twin := member("10-a", plugin.Ignore, func(context.Context, plugin.Event, *plugin.Adjustment) error { return test.fails })
		m := withShadow(twin, function(func(context.Context, plugin.Event, *plugin.Adjustment) error {
			shown++
			return nil
		}), observe.Discard())
		m.Breaker = plugin.NewBreaker(observe.Discard(), "10-a", nil)
		chain := plugin.NewChain(observe.Discard(), 2, m)
		for range calls {
			if _, err := chain.Dispatch(t.Context(), plugin.NewBudget(time.Minute), timed{&subject{hook: abi.PreCreateContainer}}); err != nil {
				t.Fatal(err)
			}
		}
		counted := 0
		for _, n := range m.Shadow.Report().Outcomes {
			counted += int(n)
		}
		if shown != test.shown || counted != test.counted {
			t.Errorf("%v: of %d calls the shadow was shown %d and %d count, want %d and %d", test.fails, calls, shown, counted, test.shown, test.counted)
		}
	}
}

// The last calls that were not the same are kept, and of each a number of rows.
func TestShadowKeepsTheLastCalls(t *testing.T) {
	n := int64(0)
	m := withShadow(member("10-a", plugin.Fail, set(abi.CPUShares, 100)), function(func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		n++
		err := set(abi.CPUShares, 100+n)(ctx, ev, adj)
		for i := range 40 {
			err = errors.Join(err, adj.SetEntry(abi.Container, abi.ContainerAnnotations, fmt.Sprintf("example.com/%02d", i), fmt.Sprint(n)))
		}
		return err
	}), observe.Discard())
	chain := plugin.NewChain(observe.Discard(), 2, m)
	for range 150 {
		if _, err := chain.Dispatch(t.Context(), nil, timed{&subject{hook: abi.PreCreateContainer}}); err != nil {
			t.Fatal(err)
		}
	}
	r := m.Shadow.Report()
	if len(r.Calls) != 100 || r.Outcomes[observe.ShadowDifferent] != 150 {
		t.Fatalf("%d calls, %v", len(r.Calls), r.Outcomes)
	}
	for i, c := range r.Calls {
		if c.More != 25 || len(c.Rows) != 16 {
			t.Fatalf("call %d has %d rows, and %d more", i, len(c.Rows), c.More)
		}
		if r := c.Rows[0]; r.Target != `container.annotations["example.com/00"]` || r.Was != nil || *r.Is != fmt.Sprint(51+i) {
			t.Errorf("call %d begins with %+v", i, r)
		}
	}
}
