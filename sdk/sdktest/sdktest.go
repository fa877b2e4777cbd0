// Package sdktest calls a plugin that is written with package sdk from a Go
// test, on the machine that builds it and without WebAssembly.
//
// A test describes what the plugin is told as a [Case], and calls the plugin
// that the package under test has registered:
//
//	changes, err := sdktest.Case{
//		Hook: abi.PreCreateContainer,
//		Pod:  sdktest.Fields{"annotations": map[string]string{"example.com/boost": "2x"}},
//		Container: sdktest.Fields{"name": "web", "resources.cpu_quota": 50_000},
//	}.Call(t, sdktest.Native(t, "", nil))
//
// or writes cases and answers down as fixtures, which serve every language and tool:
//
//	sdktest.Run(t, "testdata/boost.json")
//
// It knows the tables of the ABI: which field a hook may change, of which type and range, and
// with which capability. It is not a proxy. Forms of texts, names of cgroup files and sizes
// are not checked, and the configuration is not checked against the plugin's schema. Fuel,
// time and memory have no limit. Package variables keep their values from case to case.
// wasmproxy plugin test plays the same fixtures to the built module, loaded anew for each
// case, with the rules of the proxy.
package sdktest

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Case is one call of one hook: what the plugin is told. As in a fixture, and as on a
// node, the plugin has what it declares of abi.DefaultGrant and of Grant, which is
// abi.AllCapabilities to give it everything.
type Case fixture.Case

// The parts of a case, and what comes of it.
type (
	// Fields are the values of an object.
	Fields = fixture.Fields
	// Pod is a pod of the proxy's store.
	Pod = fixture.Pod
	// Changes are what a plugin asks for, by target.
	Changes = fixture.Changes
	// Want is the answer that a case expects, for [Run].
	Want = fixture.Want
	// Rejection is the error of [Case.Call] if the plugin refuses the call.
	Rejection = fixture.Rejection
)

// Deleted is the value of what a plugin deletes.
const Deleted = fixture.Deleted

// Withdrawn is the value of what a plugin has set in an earlier event, and withdraws.
const Withdrawn = fixture.Withdrawn

// Call calls the plugin and returns what it asks for, nothing if it fails or refuses the
// call. A refusal is a *[Rejection]. A field that the ABI does not know, or of another
// type, fails the test.
func (c Case) Call(t testing.TB, p *Plugin) (Changes, error) {
	t.Helper()
	whole := fixture.Case(c)
	if err := whole.Check(); err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return p.run(p.call(whole), func() int32 { return native.Guest.Hook(c.Hook) })
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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("sdktest: %v", err)
		}
		cases, err := fixture.Parse(file, text)
		if err != nil { // the cases that are right run all the same
			t.Errorf("sdktest: %s: %v", file, err)
		}
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				if err := c.Want.Compare(play(t, c)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// play plays the steps of a case to the plugin, and returns what came of the last.
func play(t *testing.T, c fixture.Case) (got fixture.Answer) {
	p, err := load(c, func(level slog.Level, text string) {
		got.Log = append(got.Log, strings.ToLower(level.String())+": "+text)
	})
	if err != nil {
		got.Err = err
		return got
	}
	for i, step := range c.Steps() {
		if i > 0 {
			got = fixture.Answer{}
		}
		if !native.Guest.Hooks().Has(step.Hook) {
			got.Err = fmt.Errorf("hook: the plugin does not handle %v", step.Hook)
			return got
		}
		got.Changes, err = Case(step).Call(t, p)
		got.KV, got.Metrics = p.kv, p.metrics
		if !errors.As(err, &got.Reject) {
			got.Err = err
		}
	}
	return got
}
