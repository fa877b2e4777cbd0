package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestDryRun(t *testing.T) {
	dry := func(f function) plugin.Member {
		m := member("20-dry", plugin.Ignore, f)
		m.DryRun = true
		return m
	}
	refuse := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(set(abi.CPUQuota, 5000)(nil, nil, adj), adj.Reject(0, "no"))
	}
	s, owned, log, err := dispatch(t,
		member("10-a", plugin.Ignore, set(abi.CPUShares, 100)), dry(set(abi.MemoryLimit, 7)), dry(refuse),
		dry(func(context.Context, plugin.Event, *plugin.Adjustment) error {
			return &plugin.Rejection{Reason: "neither"}
		}),
		member("30-b", plugin.Ignore, set(abi.MemoryLimit, 8))) // no conflict with what was only tried
	if err != nil || len(s.applied) != 2 || len(owned) != 2 || owned[1].Plugin != "30-b" {
		t.Errorf("applied %v, owned %v, error %v", s.applied, owned, err)
	}
	for _, want := range []string{
		`"msg":"plugin would change field","plugin":"20-dry","hook":"PreCreateContainer","namespace":"ns","pod":"web","container":"app","field":"container.resources.memory_limit_in_bytes","value":"7"`,
		`"msg":"plugin would refuse the call","plugin":"20-dry","hook":"PreCreateContainer","namespace":"ns","pod":"web","container":"app","reason":"no"`, `"reason":"neither"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "cpu_quota") {
		t.Errorf("what a refused call would have had changed is told:\n%s", log)
	}
}

// A plugin that fails under a dry run has failed, and its breaker hears of it.
func TestDryRunThatFails(t *testing.T) {
	fault := errors.New("broken")
	m := member("10-a", plugin.Ignore, func(context.Context, plugin.Event, *plugin.Adjustment) error { return fault })
	m.DryRun = true
	var heard error
	s := &subject{hook: abi.PreCreateContainer}
	_, err := plugin.NewChain(onCall(func(c *observe.HookCalled) { heard = c.Err }), 2, m).Dispatch(t.Context(), nil, s)
	if err != nil || !errors.Is(heard, fault) {
		t.Errorf("error %v, outcome %v", err, heard)
	}
}

// What a dry run takes is no time of the plugins that must not be ignored, whose calls
// it would refuse by that.
func TestDryRunTakesNobodysTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := member("10-dry", plugin.Ignore, nil)
		slow.Metered, slow.DryRun = true, true
		slow.Plugin = budgeted(func(_ context.Context, own *plugin.Budget) error {
			waited := own.Wait()
			time.Sleep(200 * time.Millisecond) // for an instance
			waited()
			time.Sleep(900 * time.Millisecond)
			if err := own.Err(); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
			return own.Err()
		})
		strict := member("20-strict", plugin.Fail, set(abi.MemoryLimit, 8))
		var outcomes []error
		chain := plugin.NewChain(onCall(func(c *observe.HookCalled) { outcomes = append(outcomes, c.Err) }), 2, slow, strict)
		owned, err := chain.Dispatch(t.Context(), plugin.NewBudget(time.Second), &subject{hook: abi.PreCreateContainer})
		if err != nil || len(owned) != 1 || !errors.Is(outcomes[0], context.DeadlineExceeded) {
			t.Errorf("owned %v, error %v, outcomes %v; want the dry run to end by its own time", owned, err, outcomes)
		}
	})
}
