package plugin_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// A plugin whose operator wrote a match writes to handles that the match accepts, whatever it is granted. It finds more
// only with store.read.all.
func TestBoundsOfHandles(t *testing.T) {
	const quota = abi.Resources + abi.CPUQuota
	bounds := plugin.BoundsOf(abi.Match{Namespaces: []string{"prod"}})
	in := store{hook: abi.Tick, within: func(o abi.Object) bool { return o == abi.FirstHandle+1 }}
	for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.AllCapabilities &^ abi.CapabilitySetOf(abi.StoreReadAll)} {
		m := plugin.Member{Capabilities: has, Bounds: bounds}
		adj := m.NewAdjustment(in, 2)
		if (adj.ReadBounds() == nil) != has.Has(abi.StoreReadAll) {
			t.Errorf("with store.read.all %v it reads within %v", has.Has(abi.StoreReadAll), adj.ReadBounds())
		}
		for o, want := range map[abi.Object]abi.Errno{
			abi.FirstHandle + 1: abi.OK, abi.FirstHandle + 2: abi.Denied, abi.FirstHandle + 3: abi.NotFound, // a pod; no handle at all
		} {
			if o != abi.FirstHandle+2 {
				if err := adj.SetInt64(o, quota, 50_000); plugin.ErrnoOf(err) != want {
					t.Errorf("a resource of handle %d: %v, want %v", o, err, want)
				}
			}
			err := adj.WriteFile(o, "memory.high", "8192000")
			if plugin.ErrnoOf(err) != want || want == abi.Denied && !strings.Contains(err.Error(), "it is outside of the operator's match") {
				t.Errorf("a file of handle %d: %v, want %v", o, err, want)
			}
		}
	}
	free := (&plugin.Member{Capabilities: abi.AllCapabilities, Bounds: plugin.BoundsOf(abi.Match{})}).NewAdjustment(in, 2)
	if err := free.WriteFile(abi.FirstHandle+2, "memory.high", "8192000"); err != nil || free.ReadBounds() != nil {
		t.Errorf("without a match: %v", err)
	}
}

// leaving is a subject of a tick, with a handle 17 that is in a match until left is true.
type leaving struct {
	store
	left bool
	done []plugin.Owned
}

func (l *leaving) Within(abi.Object, *abi.Match) bool           { return !l.left }
func (*leaving) About() (o observe.Object)                      { return o }
func (*leaving) Exempt() bool                                   { return false }
func (*leaving) Secrets(abi.CapabilitySet, int) ([]string, int) { return nil, 0 }
func (*leaving) Text(abi.Object, abi.Field) (string, abi.Errno) { return "", abi.NotFound }
func (l *leaving) Apply(all []plugin.Owned)                     { l.done = append(l.done, all...) }

// A chain looks at the match again before it applies what a plugin wants.
func TestBoundsCountWhenChangesAreApplied(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		s := &leaving{store: store{hook: abi.Tick}}
		m := member("10-a", plugin.Ignore, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			err := adj.WriteFile(abi.FirstHandle+1, "memory.high", "8192000")
			s.left = leaves
			return err
		})
		m.Hooks, m.Bounds = abi.HookSetOf(abi.Tick), plugin.BoundsOf(abi.Match{Namespaces: []string{"prod"}})
		var err error
		observer := onCall(func(c *observe.HookCalled) { err = c.Err })
		if _, err := plugin.NewChain(observer, 2, m).Dispatch(t.Context(), nil, s); err != nil {
			t.Error(err)
		}
		if errors.Is(err, abi.Denied) != leaves || (len(s.done) == 0) != leaves {
			t.Errorf("it leaves the match: %v; error %v, applied %v", leaves, err, s.done)
		}
	}
}
