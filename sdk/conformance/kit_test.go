package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// asHost is the variable that makes the test binary a host, with the fault that it names.
const asHost = "CONFORMANCE_HOST"

func TestMain(m *testing.M) {
	fault, isHost := os.LookupEnv(asHost)
	if !isHost {
		os.Exit(m.Run())
	}
	if err := serve(fault); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is a host on the proxy's own engine, with a fault.
func serve(fault string) error {
	ctx := context.Background()
	engine, err := wasm.NewEngine(ctx, wasm.Options{})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	return Serve(os.Stdin, os.Stdout, func(t Test) (fixture.Answer, error) {
		broken[fault](t.ID)
		module, err := os.ReadFile(t.Module)
		if err != nil {
			return fixture.Answer{}, err
		}
		a, err := simulate.RunCase(ctx, t.Case, func(o simulate.LoadOptions) (plugin.Plugin, error) {
			options := wasm.PluginOptions{
				Timeout: time.Minute, // a machine that stalls breaks no limit
				Config:  []byte(o.Config), Granted: o.Granted, Features: o.Features, Observer: o.Observer, KV: o.KV, Metrics: o.Metrics,
			}
			if fault == "memory is kept" {
				options.State = abi.StateInstance
			}
			return engine.Load(ctx, "conformance", module, options)
		})
		if mutate := mutants[fault]; mutate != nil {
			mutate(&a)
		}
		return a, err
	})
}

// mutants are faults of hosts that are seen in what they answer.
var mutants = map[string]func(*fixture.Answer){
	"memory is kept": func(*fixture.Answer) {},
	"another error": func(a *fixture.Answer) {
		for i, line := range a.Log {
			a.Log[i] = strings.Replace(line, "info: -8", "info: -4", 1)
		}
	},
	"a change is lost": func(a *fixture.Answer) {
		for _, target := range slices.Sorted(maps.Keys(a.Changes)) {
			delete(a.Changes, target)
			return
		}
	},
	"another order": func(a *fixture.Answer) {
		if n := len(a.Log); n > 1 {
			a.Log[n-1], a.Log[n-2] = a.Log[n-2], a.Log[n-1]
		}
	},
	"changes of what failed": func(a *fixture.Answer) {
		if a.Err != nil {
			a.Changes = fixture.Changes{"container.resources.cpu_quota": "200000"}
		}
	},
	"nothing fails": func(a *fixture.Answer) { a.Err = nil },
	"no reason": func(a *fixture.Answer) {
		if a.Err != nil {
			a.Err = errors.New("it failed")
		}
	},
	"another code": func(a *fixture.Answer) {
		if a.Reject != nil {
			a.Reject = &fixture.Rejection{Code: 3, Reason: a.Reject.Reason}
		}
	},
}

// broken are hosts that do not go on after some tests.
var broken = map[string]func(id int){
	"": nothing, "hangs": func(id int) {
		if id == 3 {
			select {}
		}
	},
	"garbage": func(id int) {
		if id == 3 {
			fmt.Println("panic: " + strings.Repeat("x", 1000))
		}
	},
	"exits": func(id int) {
		if id == 3 {
			os.Exit(7)
		}
	},
	"another id":  func(id int) { fmt.Printf(`{"id": %d, "result": "done"}`+"\n", id+1) },
	"no result":   func(id int) { fmt.Printf(`{"id": %d}`+"\n", id) },
	"one more":    func(id int) { fmt.Printf(`{"id": %d, "result": "done"}`+"\n", id) },
	"another key": func(id int) { fmt.Printf(`{"id": %d, "result": "done", "change": {}}`+"\n", id) },
}

func nothing(int) {}

func init() {
	for name := range mutants {
		broken[name] = nothing
	}
}

// runKit has the test binary take tests as a host with a fault.
func runKit(t *testing.T, fault string, timeout time.Duration, keep func(*Test) bool) (Report, error) {
	t.Helper()
	tests, err := Tests()
	if err != nil {
		t.Fatal(err)
	}
	tests = slices.DeleteFunc(tests, func(test Test) bool { return !keep(&test) })
	t.Setenv(asHost, fault)
	var stderr bytes.Buffer
	h := Host{Command: []string{os.Args[0]}, Timeout: timeout, Stderr: &stderr}
	r, err := h.Run(t.Context(), tests)
	if stderr.Len() > 0 {
		t.Logf("%s", &stderr)
	}
	return r, err
}

func all(*Test) bool      { return true }
func inCore(t *Test) bool { return t.group() == group.Core }
func first(t *Test) bool  { return t.ID <= 4 }

// TestKitPasses has the proxy's own engine take the whole kit.
func TestKitPasses(t *testing.T) {
	r, err := runKit(t, "", time.Minute, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r {
		if v.Err != nil || v.Unsupported {
			t.Errorf("%s %d, %s: %v", v.Group, v.ID, v.Name, v.Err)
		}
	}
	for _, c := range r.Counts() {
		t.Logf("%s: %d", c.Group, c.Passed)
		if c.Passed == 0 {
			t.Errorf("no test of the group %s", c.Group)
		}
	}
}

// TestKitFindsFaults has hosts with faults take the core.
func TestKitFindsFaults(t *testing.T) {
	for fault := range mutants {
		t.Run(fault, func(t *testing.T) {
			r, err := runKit(t, fault, time.Minute, inCore)
			if err != nil {
				t.Fatal(err)
			}
			if r.Counts()[0].Failed == 0 {
				t.Error("no test failed")
			}
			var b bytes.Buffer
			if err := r.Print(&b); err != nil || !strings.Contains(b.String(), "FAIL  core ") || !strings.Contains(b.String(), "want") {
				t.Errorf("printed %s, %v", &b, err)
			}
		})
	}
}

// TestKitOfBrokenHosts has hosts take the first tests that do not speak the protocol, or not for long.
func TestKitOfBrokenHosts(t *testing.T) {
	for fault, want := range map[string]string{
		"hangs": "test 3, a conflict that the guest handles: it has written no outcome for 3s", "exits": "test 3, a conflict that the guest handles: its output has ended without an outcome: exit status 7",
		"garbage": `it wrote what is no outcome, "panic: xxx`, "another id": "id is 2, want 1", "no result": `result is "", want done`,
		"one more": "id is 1, want 2", "another key": `unknown field "change"`,
	} {
		t.Run(fault, func(t *testing.T) {
			timeout := time.Minute // a slow machine's hosts do not hang
			if fault == "hangs" {
				timeout = 3 * time.Second
			}
			r, err := runKit(t, fault, timeout, first)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, want)
			}
			if len(r) > 2 {
				t.Errorf("%d tests were reported", len(r))
			}
		})
	}
}

// TestKitOfHostsThatStay has hosts that end only when they are killed, though nothing more can be read of them.
func TestKitOfHostsThatStay(t *testing.T) {
	tests, err := Tests()
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"exec >&-; exec sleep 1000":              ": it still runs 1s later",
		"head -c 17M /dev/zero; exec sleep 1000": "token too long",
	} {
		for _, tests := range [][]Test{tests[:1], nil} {
			h := Host{Command: []string{"sh", "-c", script}, Timeout: time.Second, Stderr: io.Discard}
			ended := make(chan error, 1)
			go func() {
				_, err := h.Run(t.Context(), tests)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: with %d tests: %v, want %s", script, len(tests), err, want)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: the kit of %d tests does not end", script, len(tests))
			}
		}
	}
}

// A host may lack an optional group, and never a part of the core.
func TestUnsupported(t *testing.T) {
	for name, want := range map[string]bool{group.Core: false, "kv": true} {
		test := Test{Case: fixture.Case{Want: &fixture.Want{}}}
		if name != group.Core {
			test.Needs = []string{"tick", name}
		}
		v := test.verdict(Outcome{Result: Unsupported, Reason: "not here"})
		if v.Unsupported != want || (v.Err == nil) != want || v.Group != name {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The core is told apart from the rest: no test of it calls what only an optional group has.
func TestCoreNeedsNothing(t *testing.T) {
	tests, err := Tests()
	if err != nil {
		t.Fatal(err)
	}
	for i := range tests {
		if c := &tests[i]; inCore(c) && group.OfHook(c.Case.Hook) != group.Core {
			t.Errorf("%s has the hook %v", c.Name, c.Case.Hook)
		}
	}
}
