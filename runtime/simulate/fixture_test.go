package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// function is a plugin whose Call is a Go function. It wants one hook, and may do
// everything.
type function struct {
	hook abi.Hook
	call func(ev plugin.Event, adj *plugin.Adjustment) error
}

func (f function) Manifest() abi.Manifest {
	m := abi.Manifest{Name: "function", Version: "1", Hooks: []abi.ManifestHook{{Hook: f.hook.String()}}}
	m.Capabilities = abi.AllCapabilities.Names()
	return m
}
func (f function) Close(context.Context) error { return nil }
func (f function) Call(_ context.Context, _ *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	return f.call(ev, adj)
}

// play lets an event happen to a Go function.
func play(t *testing.T, e *Event, call func(plugin.Event, *plugin.Adjustment) error) Result {
	t.Helper()
	sim, err := Open(t.Context(), e, Options{ID: "10-test", Grant: abi.AllCapabilities, Load: func(LoadOptions) (plugin.Plugin, error) {
		return function{e.Hook, call}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close(context.Background())
	res, err := sim.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestFixturesSayTheSame has a plugin read every field of the events of all fixtures,
// as the fixture tells them and as the proxy tells of the call that was made of it.
func TestFixturesSayTheSame(t *testing.T) {
	files, err := filepath.Glob("../../testdata/abi/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		for _, c := range cases(t, file) {
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) { sameFields(t, c, seen) })
		}
	}
	for _, info := range abi.Fields {
		never := left(fixture.Case{}, info) || info.Object == abi.Event && (info.Field == abi.EventHook || info.Field == abi.EventTime)
		if name := info.Object.String() + "." + info.Name; !seen[name] && !never {
			t.Errorf("no fixture has %s", name)
		}
	}
}

// TestEventFields has the fields of calls, each in a hook that has it.
func TestEventFields(t *testing.T) {
	for hook, about := range map[abi.Hook]fixture.Fields{
		abi.PreExec:                {"command": []string{"sh", "-c"}, "tty": int64(1), "stdin": int64(1)},
		abi.PreAttach:              {"tty": int64(1), "stdin": int64(0)},
		abi.PrePortForward:         {"ports": []string{"80", "443"}},
		abi.PreStopContainer:       {"timeout": int64(30)},
		abi.PreCheckpointContainer: {"location": "/a", "timeout": int64(3)},
		abi.PreCheckpointPod:       {"location": "/b"},
		abi.PreRestorePod:          {"location": "/c"},
		abi.PostPullImage:          {"image": "web:1", "image_ref": "sha256:1"},
		abi.PreRemoveImage:         {"image": "web:1"},
	} {
		c := fixture.Case{Name: "fields", Hook: hook, Event: about}
		if hook.Info().Object != abi.Event {
			c.Pod = fixture.Fields{"name": "web"}
		}
		if hook.Info().Object == abi.Container {
			c.Container = fixture.Fields{"name": "app"}
		}
		t.Run(hook.String(), func(t *testing.T) { sameFields(t, c, map[string]bool{}) })
	}
}

// cases are the fixtures in a file of vectors, which have more keys.
func cases(t *testing.T, file string) []fixture.Case {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []map[string]json.RawMessage
	if err := json.Unmarshal(b, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		for _, key := range []string{"calls", "configure", "matrix", "withheld", "needs", "earlier", "want", "cgroup_files"} {
			delete(v, key)
		}
	}
	if b, err = json.Marshal(vectors); err != nil {
		t.Fatal(err)
	}
	all, err := fixture.Parse("", b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameFields(t *testing.T, c fixture.Case, seen map[string]bool) {
	c.Config, c.KV = "", nil
	e, err := FromFixture(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	res := play(t, e, func(ev plugin.Event, _ *plugin.Adjustment) error {
		for _, info := range abi.Fields {
			want, given := written(c, info)
			if !given || left(c, info) {
				continue
			}
			seen[info.Object.String()+"."+info.Name] = true
			if got, want := value(ev, info), onPaper(info, want); got != want {
				t.Errorf("%v.%s is %s, the fixture says %s", info.Object, info.Name, got, want)
			}
		}
		return nil
	})
	if !res.Called || res.Err != nil {
		t.Errorf("called: %v, error: %v", res.Called, res.Err)
	}
}

// written is what the case says of a field of the event's own objects.
func written(c fixture.Case, info abi.FieldInfo) (any, bool) {
	fields := map[abi.Object]fixture.Fields{abi.Event: c.Event, abi.Pod: c.Pod, abi.Container: c.Container, abi.Node: c.Node}[info.Object]
	v, given := fields[info.Name]
	return v, given
}

// left reports whether a call cannot say what the fixture says: an id of what is yet
// to be made, or the state before it; a QoS class beside a cgroup parent that says
// another; and fields that this method's message does not have.
func left(c fixture.Case, info abi.FieldInfo) bool {
	method := c.Hook.Info().Method
	switch {
	case info.Name == "id", info.Name == "state", info.Name == "pod_sandbox_id", info.Name == "qos":
		return true
	}
	return info.Object == abi.Pod && info.Name == "runtime_handler" && method == "PullImage"
}

// onPaper is a fixture's value as value has it.
func onPaper(info abi.FieldInfo, v any) string {
	switch v := (fixture.Fields{info.Name: v}).Value(info).(type) {
	case string:
		return fmt.Sprintf("%q %v", v, abi.OK)
	case map[string]string:
		return fmt.Sprint(entries(maps.All(v)), abi.OK)
	case []string:
		if len(v) == 0 {
			v = nil
		}
		return fmt.Sprintf("%q %v", v, abi.OK)
	}
	return fmt.Sprint(v, abi.OK)
}

func value(ev plugin.Event, info abi.FieldInfo) string {
	switch info.Type {
	case abi.Int64:
		v, errno := ev.Int64(info.Object, info.Field)
		return fmt.Sprint(v, errno)
	case abi.String:
		v, errno := ev.Text(info.Object, info.Field)
		return fmt.Sprintf("%q %v", v, errno)
	case abi.Map:
		v, errno := ev.Entries(info.Object, info.Field)
		return fmt.Sprint(entries(v), errno)
	}
	v, errno := ev.List(context.Background(), info.Object, info.Field)
	if len(v) == 0 {
		v = nil
	}
	return fmt.Sprintf("%q %v", v, errno)
}

func entries(seq iter.Seq2[string, string]) string {
	var all []string
	if seq != nil {
		for k, v := range seq {
			all = append(all, fmt.Sprintf("%q=%q", k, v))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
