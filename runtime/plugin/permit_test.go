package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// sneaky is a plugin whose changes get into the adjustment without being checked.
type sneaky struct{}

func (sneaky) Manifest() abi.Manifest      { return abi.Manifest{} }
func (sneaky) Close(context.Context) error { return nil }
func (sneaky) Call(_ context.Context, _ *Budget, _ Event, adj *Adjustment) error {
	adj.changes = append(adj.changes, Owned{Change: Change{Op: SetEntry, Object: abi.Container, Field: abi.ContainerEnv, Key: "A", Text: "b"}})
	return nil
}

type target struct {
	Event
	applied int
}

func (*target) Hook() abi.Hook            { return abi.PreCreateContainer }
func (*target) About() (o observe.Object) { return o }
func (t *target) Apply(list []Owned)      { t.applied += len(list) }
func (*target) Own(abi.Object) bool       { return false }
func (*target) Exempt() bool              { return false }

// TestAppliedWithCapability shows that a chain looks at capabilities again when it
// applies changes, however they came about.
func TestAppliedWithCapability(t *testing.T) {
	for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.DefaultGrant()} {
		var s target
		c := NewChain(observe.Discard(), 0,
			Member{ID: "10-a", Plugin: sneaky{}, Policy: Fail, Hooks: abi.HookSetOf(abi.PreCreateContainer), Capabilities: has})
		_, err := c.Dispatch(t.Context(), nil, &s)
		if has.Has(abi.Env) {
			if err != nil || s.applied != 1 {
				t.Errorf("with env: %v, %d applied", err, s.applied)
			}
			continue
		}
		if !errors.Is(err, abi.Denied) || !strings.Contains(err.Error(), `container.env["A"]: denied: the plugin's manifest does not declare the capability env`) || s.applied != 0 {
			t.Errorf("without env: %v, %d applied", err, s.applied)
		}
	}
}
