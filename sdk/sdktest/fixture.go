package sdktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Changes are what a plugin asks for, by target, as the proxy's log names it:
// container.resources.cpu_quota, container.annotations["example.com/tier"],
// container cgroup file cpu.idle. A value is a text: a number in decimal, a list or record
// in JSON, "true" for an element of a set that is only a text, and [Deleted].
type Changes map[string]string

// Deleted is the value of what a plugin deletes.
const Deleted = native.Deleted

// Want is the answer that a case expects. Log, Metrics and KV are not compared if they are nil.
type Want struct {
	Changes Changes           `json:"changes"`
	Reject  *Rejection        `json:"reject"`
	Error   string            `json:"error"` // a part of it
	Log     []string          `json:"log"`   // each as "warn: text"
	Metrics map[string]int64  `json:"metrics"`
	KV      map[string]string `json:"kv"`
	MaxFuel int64             `json:"max_fuel"` // for wasmproxy plugin test
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
		cases, err := parse(text)
		if err != nil {
			t.Fatalf("sdktest: %s: %v", file, err)
		}
		for _, f := range cases {
			t.Run(f.Name, f.run)
		}
	}
}

// fixture is a case with those of its keys that are written in another way.
type fixture struct {
	Case
	Hook   string          `json:"hook"`
	Grant  []string        `json:"grant"`
	Config json.RawMessage `json:"config"`
}

// parse reads one fixture, or a list of them.
func parse(text []byte) (cases []fixture, err error) {
	if text = bytes.TrimSpace(text); !bytes.HasPrefix(text, []byte("[")) {
		text = fmt.Appendf(nil, "[%s]", text)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&cases); err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, errors.New("there is no case in it")
	}
	for i := range cases {
		if err := cases[i].resolve(); err != nil {
			return nil, fmt.Errorf("case %d: %w", i+1, err)
		}
	}
	return cases, nil
}

// resolve looks names up.
func (f *fixture) resolve() (err error) {
	var ok bool
	if f.Case.Hook, ok = abi.HookByName(f.Hook); !ok {
		return fmt.Errorf("hook: there is no hook %q", f.Hook)
	}
	granted, unknown := abi.CapabilitiesNamed(f.Grant)
	if len(unknown) > 0 {
		return fmt.Errorf("grant: there is no capability %q", unknown[0])
	}
	f.Case.Grant = granted
	if string(f.Config) == "null" {
		f.Config = nil
	}
	_, err = f.objects()
	return err
}

// run plays the case.
func (f *fixture) run(t *testing.T) {
	got := Want{Log: []string{}}
	p, err := load(f.Case, string(f.Config), func(level slog.Level, text string) {
		got.Log = append(got.Log, strings.ToLower(level.String())+": "+text)
	})
	if err == nil && !native.Guest.Hooks().Has(f.Case.Hook) {
		err = fmt.Errorf("hook: the plugin does not handle %v", f.Case.Hook)
	} else if err == nil {
		got.Changes, err = f.Call(t, p)
		got.KV, got.Metrics = p.kv, p.metrics
	}
	switch {
	case f.Want != nil:
		f.Want.compare(t, got, err)
	case err != nil:
		t.Error(err)
	}
}

// compare fails the test if the plugin answers otherwise.
func (w *Want) compare(t *testing.T, got Want, err error) {
	t.Helper()
	if errors.As(err, &got.Reject) {
		err = nil
	}
	switch {
	case (err == nil) != (w.Error == "") || err != nil && !strings.Contains(err.Error(), w.Error):
		t.Errorf("the plugin fails with %v, want %q", err, w.Error)
	case !reflect.DeepEqual(got.Reject, w.Reject):
		t.Errorf("the plugin refuses the call: %+v, want %+v", got.Reject, w.Reject)
	case w.Log != nil && !slices.Equal(got.Log, w.Log):
		t.Errorf("the plugin logs %q, want %q", got.Log, w.Log)
	}
	compareKeys(t, got.Changes, w.Changes)
	if w.Metrics != nil {
		compareKeys(t, got.Metrics, w.Metrics)
	}
	if w.KV != nil {
		compareKeys(t, got.KV, w.KV)
	}
}

func compareKeys[V comparable](t *testing.T, got, want map[string]V) {
	t.Helper()
	for key, v := range want {
		if set, ok := got[key]; !ok || set != v {
			t.Errorf("%s is set to %v, want %v", key, set, v)
		}
	}
	for key, v := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s is set to %v, want no change", key, v)
		}
	}
}

func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is given here has a form in JSON
	}
	return string(text)
}

// UnmarshalJSON brings the values into the form that [Changes] has.
func (c *Changes) UnmarshalJSON(b []byte) error {
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return err
	}
	*c = Changes{}
	for target, v := range raw {
		switch v := v.(type) {
		case nil:
			(*c)[target] = Deleted
		case string:
			(*c)[target] = v
		default:
			(*c)[target] = inJSON(v)
		}
	}
	return nil
}
