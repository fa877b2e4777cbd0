package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/wasmproxy/wasmproxy/abi"
)

// test is a line of abi/CONFORMANCE.md, as far as this host needs it.
type test struct {
	ID     int      `json:"id"`
	Needs  []string `json:"needs"`
	Module string   `json:"module"`
	Times  int      `json:"times"`
	Case   struct {
		Hook      string          `json:"hook"`
		Time      int64           `json:"time"`
		Grant     []string        `json:"grant"`
		Config    json.RawMessage `json:"config"`
		Event     fields          `json:"event"`
		Pod       fields          `json:"pod"`
		Container fields          `json:"container"`
		Node      fields          `json:"node"`
		Earlier   map[string]any  `json:"earlier"`
	} `json:"case"`
}

type outcome struct {
	ID      int            `json:"id"`
	Result  string         `json:"result"`
	Code    int32          `json:"code,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Changes map[string]any `json:"changes,omitempty"`
	Log     []string       `json:"log,omitempty"`
}

// serveTests answers tests until there are no more.
func serveTests(ctx context.Context, in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var t test
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.UseNumber()
		if err := d.Decode(&t); err != nil {
			return err
		}
		o := outcome{ID: t.ID, Result: "unsupported", Reason: "this host serves the core"}
		if len(t.Needs) == 0 {
			o = t.take(ctx)
		}
		if err := answers.Encode(o); err != nil {
			return err
		}
	}
	return lines.Err()
}

// take has the module answer the event.
func (t *test) take(ctx context.Context) outcome {
	o := outcome{ID: t.ID, Result: "failed"}
	module, err := os.ReadFile(t.Module)
	if err != nil {
		o.Reason = err.Error()
		return o
	}
	granted, _ := abi.CapabilitiesNamed(t.Case.Grant)
	g, err := load(ctx, module, string(t.Case.Config), granted)
	if o.Log = g.log; err != nil {
		o.Reason = err.Error()
		return o
	}
	defer g.close(ctx)
	var e *event
	for range t.Times {
		e = t.event()
		err = g.call(ctx, e)
	}
	o.Log = append(o.Log, e.log...)
	switch {
	case err != nil:
		o.Reason = err.Error()
	case e.refused:
		o.Result, o.Code, o.Reason = "refused", e.code, e.reason
	default:
		o.Result, o.Changes = "done", e.outcome()
	}
	return o
}

func (t *test) event() *event {
	e := &event{time: t.Case.Time, objects: map[abi.Object]fields{}, earlier: map[string]string{}}
	e.hook, _ = abi.HookByName(t.Case.Hook)
	all := map[abi.Object]fields{abi.Event: t.Case.Event, abi.Pod: t.Case.Pod, abi.Container: t.Case.Container, abi.Node: t.Case.Node}
	for o, f := range all {
		if f != nil {
			e.objects[o] = f
		}
	}
	e.unified = t.Case.Node["cgroup_version"] == json.Number("2")
	for target, value := range t.Case.Earlier {
		e.earlier[target] = text(value)
	}
	return e
}
