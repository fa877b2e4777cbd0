package rust

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

// TestSetters has the example "everything" call every setter of every hook, and holds
// what the proxy's own rules take to the ABI's table.
func TestSetters(t *testing.T) {
	dir := cargo(t, nil, "build", "--quiet", "--release", "--target", target, "--example", "everything")
	g := guest.Open(t, filepath.Join(dir, target, "release", "examples", "everything.wasm"))
	for _, hook := range abi.Hooks {
		t.Run(hook.Name, func(t *testing.T) {
			answer := g.Answer(t, parse(t, hook.Name))
			if answer.Err != nil {
				t.Fatal(answer.Err)
			}
			want := writable(hook.Hook)
			if hook.Hook == abi.Tick {
				want = writableByHandle()
			}
			if got := targets(answer.Changes); !slices.Equal(got, want) {
				t.Errorf("set %q, want %q", got, want)
			}
		})
	}
}

func parse(t *testing.T, hook string) fixture.Case {
	t.Helper()
	cases, err := fixture.Parse("", fmt.Appendf(nil, `{"hook": %q, "cgroup": "v2", "grant": ["*"], "pod": {"id": "p", "cgroup_parent": "/p"}, "container": {"id": "c"},
		"store": [{"pod": {"id": "p2", "namespace": "other"}, "containers": [{"id": "c2"}]}]}`, hook))
	if err != nil {
		t.Fatal(err)
	}
	return cases[0]
}

// targets are the fields and files of changes, without keys.
func targets(changes fixture.Changes) []string {
	var all []string
	for target := range maps.Keys(changes) {
		field, _, _ := strings.Cut(target, "[")
		all = append(all, strings.TrimSuffix(field, " cpu.idle"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func writable(hook abi.Hook) []string {
	var all []string
	for _, f := range abi.Fields {
		if f.Writable.Has(hook) {
			all = append(all, f.Object.String()+"."+f.Name)
		}
	}
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if abi.CgroupWritable(o).Has(hook) {
			all = append(all, o.String()+" cgroup file")
		}
	}
	slices.Sort(all)
	return all
}

func writableByHandle() []string {
	all := []string{"container(c2) cgroup file", "pod(p2) cgroup file"}
	for _, f := range abi.Fields {
		if abi.HandleWritable(f) {
			all = append(all, "container(c2)."+f.Name)
		}
	}
	slices.Sort(all)
	return all
}
