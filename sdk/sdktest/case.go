package sdktest

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Fields are the values of an object, by their names in the ABI's table of
// fields: an int or int64 for abi.Int64, a string for abi.String, a
// map[string]string for abi.Map, a []string for abi.List and abi.Set, or a
// []map[string]string for a set of records. What is not there is 0 or empty.
type Fields = fixture.Fields

// Pod is a pod of the proxy's store.
type Pod = fixture.Pod

// Case is one call of one hook: what the plugin is told. Its Want is for [Run]. As in a
// fixture, and as on a node, the plugin has what it declares of abi.DefaultGrant and of
// Grant, which is abi.AllCapabilities to give it everything. Pods and containers with an
// id are in the store, the event's own too.
type Case fixture.Case

// Changes are what a plugin asks for, by target, as the proxy's log names it:
// container.resources.cpu_quota, container.annotations["example.com/tier"],
// container cgroup file cpu.idle. The value of a deletion is [Deleted].
type Changes = fixture.Changes

// Deleted is the value of what a plugin deletes.
const Deleted = fixture.Deleted

// Call calls the plugin and returns what it asks for, nothing if it fails. A
// refusal of the call is a *plugin.Rejection. A field that the ABI does not know, or
// of another type, fails the test.
func (c Case) Call(t testing.TB, p plugin.Plugin) (Changes, error) {
	t.Helper()
	whole := fixture.Case(c)
	whole.Grant |= abi.DefaultGrant()
	if g, ok := p.(*guest); ok {
		p = g.in(&whole)
	}
	answer, err := whole.Call(t.Context(), p)
	switch {
	case err != nil:
		t.Fatalf("sdktest: %v", err)
	case answer.Reject != nil:
		return nil, &plugin.Rejection{Code: answer.Reject.Code, Reason: answer.Reject.Reason}
	}
	return answer.Changes, answer.Err
}

// NewEvent returns what the case tells a plugin. A field that the ABI does not
// know, or of another type, fails the test.
func (c Case) NewEvent(t testing.TB) plugin.Event {
	t.Helper()
	whole := fixture.Case(c)
	ev, err := whole.NewEvent()
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return ev
}

// Run plays the fixtures of these files, each in a test of its own, to the plugin
// that the package under test has registered. testdata/abi/README.md of the proxy
// has their format.
//
// The plugin is configured anew for each case, but nothing resets the package's
// variables: what OnConfigure or a handler set in one case is still there in the next.
// wasmproxy plugin test, and the proxy, load the module anew. A plugin that depends on
// that sets its variables in OnConfigure for every configuration, also for none.
func Run(t *testing.T, files ...string) {
	t.Helper()
	if len(files) == 0 {
		t.Fatal("sdktest: no files of fixtures")
	}
	for _, file := range files {
		cases, err := fixture.Read(file)
		if err != nil {
			t.Fatalf("sdktest: %v", err)
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				answer, err := c.Run(t.Context(), load)
				if err == nil {
					err = c.Want.Compare(answer)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
