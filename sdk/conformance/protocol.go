package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Version is that of the form of tests and outcomes.
const Version = 1

// Outcome is what came of a test.
type Outcome struct {
	ID      int               `json:"id"`
	Result  Result            `json:"result"`
	Code    uint32            `json:"code,omitempty"`   // of a refusal
	Reason  string            `json:"reason,omitempty"` // of a refusal or failure, or why the host does not support the test
	Changes fixture.Changes   `json:"changes,omitempty"`
	Log     []string          `json:"log,omitempty"`
	KV      map[string]string `json:"kv,omitempty"`
	Metrics map[string]int64  `json:"metrics,omitempty"`
}

// Result is how a test ended.
type Result string

// The results.
const (
	Done        Result = "done"        // the plugin returned 0
	Refused     Result = "refused"     // it refused the call
	Failed      Result = "failed"      // it was not loaded, or it failed
	Unsupported Result = "unsupported" // the host does not serve a group that the test needs
)

// OutcomeOf returns what a host that answers fixtures says.
func OutcomeOf(id int, a fixture.Answer) Outcome {
	o := Outcome{ID: id, Result: Done, Changes: a.Changes, Log: a.Log, KV: a.KV, Metrics: a.Metrics}
	switch {
	case a.Err != nil:
		o.Result, o.Reason = Failed, a.Err.Error()
	case a.Reject != nil:
		o.Result, o.Code, o.Reason = Refused, a.Reject.Code, a.Reject.Reason
	}
	return o
}

// wireTest is a test as a line of JSON.
type wireTest struct {
	Version int             `json:"version"`
	ID      int             `json:"id"`
	Name    string          `json:"name"`
	Needs   []string        `json:"needs"`
	Module  string          `json:"module"`
	Times   int             `json:"times"`
	Case    json.RawMessage `json:"case"`
}

// wireCase is a fixture without the answer, and with all that it leaves out.
type wireCase struct {
	fixture.Case
	Hook   string          `json:"hook"`
	Config json.RawMessage `json:"config,omitempty"`
	Grant  []string        `json:"grant"`
}

// encode writes a test as a line.
func (t *Test) encode() ([]byte, error) {
	c := t.Case.Complete()
	if slices.Contains(making, c.Hook) { // nothing has an id that is about to be made
		made := c.Pod
		if c.Hook.Info().Object == abi.Container {
			made = c.Container
		}
		made["id"] = ""
	}
	c.Want = nil
	event, err := json.Marshal(wireCase{Case: c, Hook: c.Hook.String(), Config: json.RawMessage(c.Config), Grant: c.Grant.Names()})
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(wireTest{Version, t.ID, t.Name, t.Needs, t.Module, t.Times, event})
	return append(line, '\n'), err
}

// making are the hooks that come before their object is there.
var making = []abi.Hook{abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreRestorePod}

func decodeTest(line []byte) (Test, error) {
	var w wireTest
	if err := json.Unmarshal(line, &w); err != nil {
		return Test{}, err
	}
	if w.Version != Version {
		return Test{}, fmt.Errorf("the test has version %d, this host knows %d", w.Version, Version)
	}
	cases, err := fixture.Parse("", w.Case)
	if err != nil {
		return Test{}, err
	}
	var grant struct{ Grant []string }
	if err := json.Unmarshal(w.Case, &grant); err != nil {
		return Test{}, err
	}
	c := cases[0]
	c.Grant, _ = abi.CapabilitiesNamed(grant.Grant)
	for _, fields := range []fixture.Fields{c.Pod, c.Container} {
		if fields["id"] == "" {
			delete(fields, "id")
		}
	}
	for _, name := range []string{"hook", "time", "method"} { // which a fixture leaves to who plays it
		delete(c.Event, name)
	}
	for range w.Times - 1 {
		before := c
		c.Previous = &before
	}
	return Test{ID: w.ID, Name: w.Name, Needs: w.Needs, Module: w.Module, Times: w.Times, Case: c}, nil
}

// maxLine bounds a line, in bytes: cases have texts of up to 1 MiB.
const maxLine = 16 << 20

// Serve is the loop of a host in Go: it reads tests, has play take each, and writes the outcomes.
func Serve(in io.Reader, out io.Writer, play func(Test) (fixture.Answer, error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		t, err := decodeTest(lines.Bytes())
		if err != nil {
			return fmt.Errorf("reading a test: %w", err)
		}
		a, err := play(t)
		if err != nil {
			return fmt.Errorf("test %d, %s: %w", t.ID, t.Name, err)
		}
		line, err := json.Marshal(OutcomeOf(t.ID, a))
		if err != nil {
			return err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}
