package simulate

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// bundled are the modules that come with the program.
var bundled = []string{"audit", "cpu-burst", "cpu-normalization", "default-annotations", "exec-guard", "image-policy", "koordlet", "memory-qos", "qos"}

// recordings has the engine and, of each bundled plugin, the recordings of its fixtures.
type recordings struct {
	engine *wasm.Engine
}

func newRecordings(t *testing.T) *recordings {
	t.Helper()
	e, err := wasm.NewEngine(t.Context(), wasm.Options{Interpret: true}) // it loads each of them many times
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	return &recordings{e}
}

func (r *recordings) loader(t *testing.T, code []byte) Loader {
	return func(o LoadOptions) (plugin.Plugin, error) {
		return r.engine.Load(t.Context(), "10-fixture", code, wasm.PluginOptions{
			Timeout: time.Minute, // a machine that stalls breaks no limit
			Config:  []byte(o.Config), Granted: o.Granted, KV: o.KV, Metrics: o.Metrics, Features: o.Features, Observer: o.Observer,
		})
	}
}

// record returns the recording of a case, nil if the plugin is not loaded or not called.
func (r *recordings) record(t *testing.T, code []byte, c fixture.Case, options recording.Options) *recording.Recording {
	t.Helper()
	options.For, options.Ticks = 0, true
	recorder := recording.NewRecorder(options)
	header := recording.Header{Plugin: "10-fixture"}
	event, err := FromFixture(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), event, Options{ID: "10-fixture", Load: func(o LoadOptions) (plugin.Plugin, error) {
		p, err := r.loader(t, code)(o)
		if err == nil {
			p.(plugin.Watched).Watch(recorder)
			header.Config, header.Grant, header.Hooks = []byte(o.Config), o.Granted.Names(), p.Manifest().Hooks
			header.Node.CgroupVersion = c.CgroupVersion()
			for _, f := range abi.Features {
				if slices.Contains(o.Features, f.Feature) {
					header.Features = append(header.Features, f.Name)
				}
			}
		}
		return p, err
	}})
	if errors.As(err, new(*LoadError)) {
		return nil
	}
	if err == nil {
		_, err = s.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	var text bytes.Buffer
	if err := recorder.Write(t.Context(), &text, header); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Read(&text)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text.Bytes())
	}
	return rec
}

// replay plays all calls of a recording.
func (r *recordings) replay(t *testing.T, rec *recording.Recording, code []byte, m *mutant) (all []Played) {
	t.Helper()
	p, err := OpenReplay(&rec.Header, ReplayOptions{Load: func(o LoadOptions) (plugin.Plugin, error) {
		p, err := r.loader(t, code)(o)
		if m != nil && err == nil {
			p = mutated{p, m}
		}
		return p, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	for i := range rec.Calls {
		if m != nil {
			m.choose(&rec.Calls[i])
		}
		res, err := p.Play(t.Context(), &rec.Calls[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, res)
	}
	return all
}

func module(t *testing.T, name string) []byte {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("../../plugins-wasm", name, name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func fixtures(t *testing.T, name string) (all []fixture.Case) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../plugins-wasm", name, "testdata/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has the fixtures %q, %v", name, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := fixture.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

// The bundled plugins' fixtures, recorded and played to the same module, are all the same, and cost about as much fuel.
func TestBundledPluginsReplayTheSame(t *testing.T) {
	r := newRecordings(t)
	for _, name := range bundled {
		code, calls := module(t, name), 0
		for _, c := range fixtures(t, name) {
			rec := r.record(t, code, c, recording.DefaultOptions())
			if rec == nil {
				continue
			}
			if rec.End == nil || rec.End.Dropped.All() > 0 {
				t.Errorf("%s: %s: the recording ends with %+v", name, c.Name, rec.End)
			}
			for _, got := range r.replay(t, rec, code, nil) {
				calls++
				if got.Outcome != Same {
					t.Errorf("%s: %s: %+v", name, c.Name, got)
				}
				if off := got.Fuel - got.WasFuel; max(off, -off)*50 > got.WasFuel { // what a list goes through is not recorded
					t.Errorf("%s: %s: the fuel is %d, it was %d", name, c.Name, got.Fuel, got.WasFuel)
				}
			}
		}
		if calls < 5 {
			t.Errorf("%s: only %d calls were played", name, calls)
		}
	}
}

// Fixtures of recordings of the bundled plugins pass.
func TestFixturesOfRecordings(t *testing.T) {
	r := newRecordings(t)
	for _, name := range bundled {
		code := module(t, name)
		for _, c := range fixtures(t, name) {
			rec := r.record(t, code, c, recording.DefaultOptions())
			if rec == nil {
				continue
			}
			made, _ := Fixtures(rec)
			for _, one := range made {
				text, err := json.Marshal(one)
				if err != nil {
					t.Fatal(err)
				}
				cases, err := fixture.Parse("made", text)
				if err != nil {
					t.Fatalf("%s: %s: %v: %s", name, c.Name, err, text)
				}
				got, err := RunCase(t.Context(), cases[0], r.loader(t, code))
				if err := errors.Join(err, cases[0].Want.Compare(got)); err != nil {
					t.Errorf("%s: %s: %v: %s", name, c.Name, err, text)
				}
			}
		}
	}
}

// A mutant of each bundled plugin asks as the plugin does, but wants something else.
func TestMutantsDiffer(t *testing.T) {
	r := newRecordings(t)
	for _, name := range bundled {
		code, found := module(t, name), map[string]bool{}
		for _, c := range fixtures(t, name) {
			rec := r.record(t, code, c, recording.DefaultOptions())
			if rec == nil {
				continue
			}
			for mutation, wants := range map[string]func(plugin.Changed) bool{
				"constant": func(row plugin.Changed) bool { return row.Was != nil && row.Is != nil && *row.Is != *row.Was },
				"dropped":  func(row plugin.Changed) bool { return row.Was != nil && row.Is == nil },
			} {
				m := &mutant{mutation: mutation}
				for i, got := range r.replay(t, rec, code, m) {
					if m.keys[i] == "" {
						continue
					}
					found[mutation] = true
					if got.Outcome != Different || len(got.Changes) != 1 || !wants(got.Changes[0]) {
						t.Errorf("%s: %s: %s of %s: %+v", name, c.Name, mutation, m.keys[i], got)
					}
				}
			}
			for i, got := range r.replay(t, rec, trapping(t, code), nil) {
				found["trap"] = true
				if rec.Calls[i].Error == "" && (got.Outcome != Failed || !strings.Contains(got.Error, "unreachable")) {
					t.Errorf("%s: %s: a trap: %+v", name, c.Name, got)
				}
			}
		}
		if writes := !slices.Contains([]string{"audit", "exec-guard", "image-policy"}, name); !found["trap"] || writes && len(found) < 3 {
			t.Errorf("%s: only the mutations %v happened", name, found)
		}
	}
}

// A refusal is recorded as one, and no failure is the same as it. A refusal that the recorded plugin did not make is a difference.
func TestRefusalIsNoFailure(t *testing.T) {
	r, code, refusals := newRecordings(t), module(t, "exec-guard"), 0
	for _, c := range fixtures(t, "exec-guard") {
		rec := r.record(t, code, c, recording.DefaultOptions())
		if rec == nil || c.Want.Reject == nil {
			continue
		}
		refusals++
		was := &rec.Calls[0]
		if was.Error != "" || was.Reject == nil || fixture.Rejection(*was.Reject) != *c.Want.Reject {
			t.Errorf("%s: it is recorded as the refusal %+v and the error %q", c.Name, was.Reject, was.Error)
		}
		if got := r.replay(t, rec, trapping(t, code), nil)[0]; got.Outcome != Failed {
			t.Errorf("%s: a trap in its place: %+v", c.Name, got)
		}
		for name, reject := range map[string]*plugin.Rejection{"another reason": {Code: c.Want.Reject.Code, Reason: "no"}, "none": nil} {
			was.Reject = reject
			if got := r.replay(t, rec, code, nil)[0]; got.Outcome != Different || len(got.Changes) != 1 || got.Error != "" {
				t.Errorf("%s: recorded with %s: %+v", c.Name, name, got)
			}
		}
	}
	if refusals == 0 {
		t.Error("no call was refused")
	}
}

// mutant alters what a plugin asks before the answers see it: the last change of each call that was accepted.
type mutant struct {
	mutation string
	keys     []string // of the changes, by call; "" if it has none that counts
}

func (m *mutant) choose(c *recording.Call) {
	key := ""
	for i := range c.Asked {
		a := &c.Asked[i]
		switch name := a.Question.Function.Name; {
		case !recording.Writes(&a.Question) || a.Question.Errno != abi.OK || c.Error != "" || c.Reject != nil:
		case m.mutation == "constant" && !slices.Contains([]string{"set_i64", "set_bytes", "map_set", "cgroup_set", "kv_set"}, name):
		default:
			key = a.Key()
		}
	}
	m.keys = append(m.keys, key)
}

// mutated is a plugin whose mutant is told before the watcher.
type mutated struct {
	plugin.Plugin
	by *mutant
}

func (p mutated) Watch(w plugin.Watcher) (stop func(), ok bool) {
	return p.Plugin.(plugin.Watched).Watch(altering{w, p.by})
}

type altering struct {
	plugin.Watcher
	by *mutant
}

func (w altering) Begin(ev plugin.Event, adj *plugin.Adjustment) plugin.CallWatcher {
	return alteringCall{w.Watcher.Begin(ev, adj), w.by}
}

type alteringCall struct {
	plugin.CallWatcher
	by *mutant
}

func (c alteringCall) Ask(q *plugin.Question) bool { return c.by.alter(q) || c.CallWatcher.Ask(q) }

// alter reports whether the question is dropped.
func (m *mutant) alter(q *plugin.Question) bool {
	asked := recording.Spell(*q, false, nil)
	if asked.Key() != m.keys[len(m.keys)-1] {
		return false
	}
	if m.mutation == "dropped" {
		q.Function = &abi.Functions[slices.IndexFunc(abi.Functions, func(f abi.Function) bool { return f.Name == "reject" })]
		return true
	}
	if last := &q.Args[len(q.Args)-1]; last.IsText {
		last.Text += "1"
	} else {
		last.Number++
	}
	return false
}

// trapping returns the module with a wp_hook that is the instruction unreachable alone.
func trapping(t *testing.T, code []byte) []byte {
	t.Helper()
	imports, hook := 0, -1
	out := slices.Clone(code[:8])
	for rest := code[8:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		switch id {
		case 2: // imports: all are functions
			count, _ := binary.Uvarint(body)
			imports = int(count)
		case 7:
			at := bytes.Index(body, []byte("\x07wp_hook\x00"))
			number, _ := binary.Uvarint(body[at+9:])
			hook = int(number)
		case 10:
			body = trapAt(body, hook-imports)
		}
		out = append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
	}
	return out
}

// trapAt replaces the body of a function in a section of code.
func trapAt(section []byte, function int) []byte {
	count, n := binary.Uvarint(section)
	out := binary.AppendUvarint(nil, count)
	for i := range int(count) {
		size, m := binary.Uvarint(section[n:])
		body := section[n+m : n+m+int(size)]
		n += m + int(size)
		if i == function {
			body = []byte{0, 0, 0x0b} // no locals; unreachable; end
		}
		out = append(binary.AppendUvarint(out, uint64(len(body))), body...)
	}
	return out
}

// A map of which something was left out answers what was not: other entries, and, if it has all keys, that there is no entry.
func TestHiddenMapAnswers(t *testing.T) {
	asked := func(text string) (a recording.Asked) {
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return a
	}
	for _, c := range []struct{ is, key, want string }{
		{`"is": {"a": "1", "b": "x (hidden)"}, "hidden": true`, "a", "1"},
		{`"is": {"a": "1", "b": "x (hidden)"}, "hidden": true`, "b", "unknown"},
		{`"is": {"a": "1", "b": "x (hidden)"}, "hidden": true`, "c", "NOT_FOUND"},
		{`"is": {"a": "1", "(hidden)": "2"}, "hidden": true`, "a", "1"},
		{`"is": {"a": "1", "(hidden)": "2"}, "hidden": true`, "c", "unknown"},
		{`"is": "(hidden)", "hidden": true`, "c", "unknown"},
		{`"hidden": true`, "c", "unknown"},
		{`"is": {}`, "c", "NOT_FOUND"},
		{`"is": {"a": "(hidden)"}`, "a", "(hidden)"}, // it is so on the node
	} {
		dump := asked(`{"map_dump": ["pod", "annotations"], ` + c.is + `}`)
		a := answers{call: &recording.Call{Asked: []recording.Asked{dump}}}
		q := asked(`{"map_get": ["pod", "annotations", "` + c.key + `"], "hidden": true}`).Question
		got := "unknown"
		if a.lookUp(&q) {
			got = string(q.Data)
			if q.Errno != abi.OK {
				got = abi.ErrnoName(q.Errno)
			}
		}
		if got != c.want {
			t.Errorf("%s of a map with %s is %s, want %s", c.key, c.is, got, c.want)
		}
	}
}

// A recording that somebody has changed, or that is damaged, is refused or played: none ends in a panic.
func TestReplayTakesAnyRecording(t *testing.T) {
	r, code := newRecordings(t), module(t, "default-annotations")
	for _, asked := range []string{
		`{"cri_raw":[],"error":"CONFLICT"}`,
		`{"kv_get":["a"],"error":"CONFLICT"}`,
		`{"cgroup_read":[{"hex":""},["cpu.max"]],"error":"CONFLICT"}`,
		`{"pod_find":[3,"x"],"error":"CONFLICT"}`,
		`{"map_dump":["pod","annotations"],"is":{"hex":"ffffffff"}}`,
		`{"map_set":[-5,3,"a","b"]}`,
		`{"map_set":[4294967298,10,"a","b"],"error":"CONFLICT"}`,
		`{"get":["pod",-1],"is":"x"}`,
		`null`,
	} {
		text := `{"recording":1,"plugin":"10-x","node":{"cgroup_version":2}}` + "\n" +
			`{"hook":"PreRunPodSandbox","time":-9223372036854775808,"asked":[` + asked + `],"handles":{"16":"("}}` + "\n"
		if rec, err := recording.Read(strings.NewReader(text)); err == nil {
			r.replay(t, rec, code, nil)
		}
	}
}

// Where the recorded plugin had failed, such as by a limit of its Tick, and the other one does not, the difference says why it had.
func TestReplaySaysWhyItHadFailed(t *testing.T) {
	rec, err := recording.Read(strings.NewReader(`{"recording":1,"plugin":"10-x","node":{}}` + "\n" +
		`{"hook":"PreRunPodSandbox","time":1,"asked":[{"get":["pod","namespace"],"is":"a"}],"error":"it has used 20 units of fuel"}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := newRecordings(t).replay(t, rec, module(t, "default-annotations"), nil)[0]
	if got.Outcome != Different || len(got.Changes) != 1 || *got.Changes[0].Was != "failed: it has used 20 units of fuel" {
		t.Errorf("got %+v", got)
	}
}

// A plugin that reads everything, the environment included, has no secret in its recording. What was hidden is unknown when
// it is asked again; without the capability the recording answers everything.
func TestSecretsAreNotRecorded(t *testing.T) {
	r := newRecordings(t)
	code, err := os.ReadFile("../../testdata/wat/everything.wasm")
	if err != nil {
		t.Fatal(err)
	}
	options := recording.DefaultOptions()
	options.Call = recording.MaxCall
	for _, names := range []bool{false, true} {
		for grant, want := range map[string]Outcome{`["env"]`: Unknown, `[]`: Same} {
			note := map[Outcome]string{Unknown: "it is s3cr3t-value", Same: "it is (hidden)"}[want]
			cases, err := fixture.Parse("secrets", []byte(`{"hook": "PreCreateContainer", "grant": `+grant+`, "cgroup": "v2",
				"pod": {"name": "web", "annotations": {"note": "`+note+`"}},
				"container": {"name": "app", "env": {"TOKEN_NAME": "s3cr3t-value"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			options.Env = names
			rec := r.record(t, code, cases[0], options)
			if len(rec.Calls) != 1 || len(rec.Calls[0].Asked) < 500 {
				t.Fatalf("the recording has %d calls, and ends with %+v", len(rec.Calls), rec.End)
			}
			text, err := json.Marshal(rec.Calls)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("s3cr3t")) || !names && bytes.Contains(text, []byte("TOKEN_NAME")) {
				t.Errorf("granted %s, with names %t: the recording has a secret", grant, names)
			}
			if !bytes.Contains(text, []byte("it is (hidden)")) {
				t.Errorf("granted %s: the annotation is not hidden", grant)
			}
			got := r.replay(t, rec, code, nil)
			if got[0].Outcome == want {
				continue
			}
			t.Errorf("granted %s, with names %t: the outcome is %s, want %s: %q, %+v", grant, names, got[0].Outcome, want, got[0].Unknown, got[0].Changes)
		}
	}
}

// A plugin that gives a variable what is in the value or the key of an annotation replays the same, though the recording hides it.
func TestOwnVariableReplaysTheSame(t *testing.T) {
	r := newRecordings(t)
	code, err := os.ReadFile("../../testdata/wat/own-env.wasm")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := fixture.Parse("own", []byte(`{"hook": "PreCreateContainer", "grant": ["env"], "pod": {"name": "web"}, "container": {"name": "app"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for key, shown := range map[string]string{"example.com/tier": "example.com/tier", "x.io/a-gold-tier": "x.io/a-(hidden)"} {
		code := bytes.Replace(code, []byte("example.com/tier"), []byte(key), 1)
		rec := r.record(t, code, cases[0], recording.DefaultOptions())
		text, err := json.Marshal(rec.Calls)
		if err != nil || bytes.Contains(text, []byte("gold-tier")) || !bytes.Contains(text, []byte(shown)) {
			t.Errorf("the recording has %s, error %v", text, err)
		}
		if got := r.replay(t, rec, code, nil); len(got) != 1 || got[0].Outcome != Same {
			t.Errorf("it replays as %+v", got)
		}
	}
}

// The calls of the ABI's own vectors, each function with all its answers and errors, are recorded and played the same,
// but where something was hidden.
func TestVectorsReplayTheSame(t *testing.T) {
	r := newRecordings(t)
	const golden = "../../testdata/abi/golden/1.0/"
	code, err := os.ReadFile(golden + "wat.wasm")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, c := range goldenCases(t, golden+"vectors.json") {
		options := recording.DefaultOptions()
		options.Call, options.Env = recording.MaxCall, true
		rec := r.record(t, code, c, options)
		if rec == nil || len(rec.Calls) == 0 {
			continue // it is larger than what is recorded
		}
		for i, got := range r.replay(t, rec, code, nil) {
			calls++
			hidden := slices.ContainsFunc(rec.Calls[i].Asked, func(a recording.Asked) bool { return a.Hidden })
			if got.Outcome != Same && (got.Outcome != Unknown || !hidden) {
				t.Errorf("%s: %s: unknown %q, changes %+v, error %s", c.Name, got.Outcome, got.Unknown, got.Changes, got.Error)
			}
		}
	}
	if calls < 50 {
		t.Errorf("only %d calls were played", calls)
	}
}

// goldenCases are the vectors as fixtures, without what only vectors have.
func goldenCases(t *testing.T, file string) (all []fixture.Case) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, keys := range list {
		for _, key := range []string{"calls", "configure", "matrix", "withheld", "needs"} {
			delete(keys, key)
		}
		text, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := fixture.Parse("vector", text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

// A version that does not declare a capability any more is denied what needs it, as on the node, though the recorded one was not.
func TestLostCapability(t *testing.T) {
	r := newRecordings(t)
	code, err := os.ReadFile("../../testdata/wat/own-env.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const declared = `["annotations","env"]`
	cases, err := fixture.Parse("own", []byte(`{"hook": "PreCreateContainer", "grant": ["env"], "pod": {"name": "web"}, "container": {"name": "app"}}`))
	if err != nil || !bytes.Contains(code, []byte(declared)) {
		t.Fatal("the module declares something else", err)
	}
	rec := r.record(t, code, cases[0], recording.DefaultOptions())
	for left, want := range map[string]Outcome{
		declared:          Same,
		`["annotations"]`: Different, // the plugin goes on without the variable
		`["env"]`:         Failed,    // it fails without the annotation
	} {
		less := bytes.Replace(code, []byte(declared), fmt.Appendf(nil, "%-*s", len(declared), left), 1)
		if got := r.replay(t, rec, less, nil); len(got) != 1 || got[0].Outcome != want {
			t.Errorf("with %s it replays as %+v, want %s", left, got, want)
		}
	}
}
