package sdktest

import (
	"context"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Fields are the values of an object, by their names in the ABI's table of
// fields: an int for abi.Int64, a string for abi.String, a map[string]string
// for abi.Map. What is not there is absent.
type Fields map[string]any

// Pod is a pod of the proxy's store.
type Pod struct {
	Fields     Fields
	Containers []Fields
}

// Case is one call of one hook: what the plugin is told.
type Case struct {
	Hook      abi.Hook
	At        time.Time // zero is the Unix epoch
	Pod       Fields
	Container Fields // nil in hooks of pods
	Node      Fields
	Files     plugin.Files // the node's cgroup files; nil for a node without any

	Siblings []Fields // the pod's other containers
	Pods     []Pod    // other pods that the proxy knows
}

// Changes are what a plugin asks for, by target, as the proxy's log names it:
// container.resources.cpu_quota, container.annotations["example.com/tier"],
// container cgroup file cpu.idle. The value of a deletion is [Deleted].
type Changes map[string]string

// Deleted is the value of what a plugin deletes.
const Deleted = "(deleted)"

// Call calls the plugin and returns what it asks for, nothing if it fails. A
// refusal of the call is a *plugin.Rejection.
func (c Case) Call(t testing.TB, p plugin.Plugin) (Changes, error) {
	t.Helper()
	adj := plugin.NewAdjustment(c.Hook, c.Files)
	if err := p.Call(context.Background(), c.Event(t), adj); err != nil {
		return nil, err
	}
	if r := adj.Rejection(); r != nil {
		return nil, r
	}
	changes := Changes{}
	for _, change := range adj.Changes() {
		changes[change.Target()] = value(change)
	}
	return changes, nil
}

func value(c plugin.Change) string {
	switch c.Op {
	case plugin.DeleteEntry:
		return Deleted
	case plugin.SetInt64:
		return c.Value()
	}
	return c.Text
}
