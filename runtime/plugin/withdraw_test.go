package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// What is withdrawn makes room in the limits of a call, and what is set after it counts.
func TestWithdrawMakesRoom(t *testing.T) {
	a := plugin.NewAdjustment(abi.PreCreateContainer, 2)
	large := strings.Repeat("x", 250<<10)
	for n := range 1000 {
		if err := a.SetEntry(abi.Container, abi.ContainerAnnotations, "a", large); err != nil {
			t.Fatalf("change %d: %v", n, err)
		}
		gone, err := a.Withdraw(abi.Container, abi.ContainerAnnotations, "a")
		if err != nil || gone != 1 || len(a.Changes()) != 0 {
			t.Fatalf("it went through %d changes, error %v, and left %v", gone, err, a.Changes())
		}
	}
	err := errors.Join(
		a.SetInt64(abi.Container, quota, 20_000), a.SetInt64(abi.Container, quota, 30_000), a.SetText(abi.Container, abi.ContainerImage, "b"))
	if gone, also := a.Withdraw(abi.Container, quota, ""); errors.Join(err, also) != nil || gone != 3 {
		t.Errorf("it went through %d changes, errors %v, %v", gone, err, also)
	}
	if left := a.Changes(); len(left) != 1 || left[0].Text != "b" {
		t.Errorf("left are %v", left)
	}
	for _, key := range []string{"", "k"} {
		field := map[string]abi.Field{"": abi.ContainerEnv, "k": quota}[key]
		if _, err := a.Withdraw(abi.Container, field, key); plugin.ErrnoOf(err) != abi.Invalid {
			t.Errorf("field %d with the key %q: %v", field, key, err)
		}
	}
}

const quota = abi.Resources + abi.CPUQuota

// holding is a subject of which a plugin holds cpu.idle.
type holding struct {
	*subject
	plugin string
}

func (holding) Opposed(*plugin.Change) string        { return "" }
func (holding) Replaces(string, *plugin.Change) bool { return false }
func (h holding) Holds(by string, c *plugin.Change) bool {
	return by == h.plugin && c.IsFile() && c.Key == "cpu.idle"
}

// To withdraw the same again and again makes no room for more than a call may change in all.
func TestWithdrawAgain(t *testing.T) {
	m := plugin.Member{ID: "10-a", Capabilities: abi.AllCapabilities}
	a := m.NewAdjustment(holding{&subject{hook: abi.PreCreateContainer}, "10-a"}, 2)
	for range 50_000 {
		if _, err := a.Withdraw(abi.Container, 0, "cpu.idle"); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.Changes()) != 1 {
		t.Fatalf("changes are %v", a.Changes())
	}
	large, bytes := strings.Repeat("x", 100<<10), 0
	for _, key := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		if a.SetEntry(abi.Container, abi.ContainerAnnotations, key, large) == nil {
			bytes += len(key) + len(large)
		}
	}
	if bytes > 1<<20 {
		t.Errorf("the call changes %d bytes", bytes)
	}
}

// What a plugin holds and withdraws is a change that needs the same rights, conflicts with nobody, and is told as such. A plugin
// learns with whom its last conflict was.
func TestWithdrawInAChain(t *testing.T) {
	var told []observe.FieldChanged
	observer := observe.Func(func(_ context.Context, e observe.Event) {
		if changed, ok := e.(*observe.FieldChanged); ok {
			told = append(told, *changed)
		}
	})
	member := func(id string, f function) plugin.Member {
		return plugin.Member{ID: id, Plugin: f, Hooks: abi.HookSetOf(abi.PreCreateContainer), Capabilities: abi.AllCapabilities}
	}
	var opponents []string
	s := holding{&subject{hook: abi.PreCreateContainer}, "10-first"}
	chain := plugin.NewChain(observer, 2,
		member("10-first", func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			_, err := adj.Withdraw(abi.Container, 0, "cpu.idle")
			_, again := adj.Withdraw(abi.Container, 0, "cpu.idle")
			return errors.Join(err, again, adj.SetInt64(abi.Container, quota, 20_000))
		}),
		member("20-second", func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			_, err := adj.Withdraw(abi.Container, 0, "cpu.idle") // which is not its own
			return errors.Join(err, adj.WriteFile(abi.Container, "cpu.idle", "1"))
		}),
		member("30-third", func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			opponents = append(opponents, adj.Opponent())
			first := adj.SetInt64(abi.Container, quota, 30_000)
			opponents = append(opponents, adj.Opponent())
			second := adj.WriteFile(abi.Container, "cpu.idle", "0")
			opponents = append(opponents, adj.Opponent())
			if plugin.ErrnoOf(first) != abi.Conflict || plugin.ErrnoOf(second) != abi.Conflict {
				t.Errorf("errors %v, %v, want conflicts", first, second)
			}
			return nil
		}))
	if _, err := chain.Dispatch(t.Context(), plugin.NewBudget(time.Minute), s); err != nil {
		t.Fatal(err)
	}
	var applied []string
	for _, c := range s.applied {
		applied = append(applied, c.Plugin+" "+c.Change.Target()+" "+c.Change.Value())
	}
	want := "10-first container cgroup file cpu.idle (withdrawn); 10-first container.resources.cpu_quota 20000; 20-second container cgroup file cpu.idle 1"
	if got := strings.Join(applied, "; "); got != want || len(told) != 3 || told[0].Value != "(withdrawn)" {
		t.Errorf("applied %s\nwant    %s\ntold %v", got, want, told)
	}
	if got := strings.Join(opponents, ","); got != ",10-first,20-second" {
		t.Errorf("the opponents were %s", got)
	}
}
