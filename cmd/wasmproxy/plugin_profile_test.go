package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
)

// TestBenchProfile has all the fuel of a hook in its profile, by functions of the guest and of the host.
func TestBenchProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fuel.pprof")
	const dir = "../../plugins-wasm/cpu-burst/"
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	f := eventFlags{}
	f.register(cmd)
	f.event = dir + "testdata/cpu-burst.json"
	tried, err := f.try(cmd, dir+"cpu-burst.wasm")
	if err != nil {
		t.Fatal(err)
	}
	defer tried.engine.Close(t.Context())
	b := &bencher{trial: tried}
	cost, err := b.once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.profile(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	var fuel, lists int64
	names := map[string]bool{}
	for _, s := range p.Sample {
		fuel += s.Value[1]
		leaf := s.Location[0].Line[0].Function.Name
		if names[leaf] = true; leaf == "wp1.pod_list" {
			lists += s.Value[0]
		}
		if root := s.Location[len(s.Location)-1].Line[0].Function.Name; !strings.Contains(root, "exportHook") {
			t.Errorf("a stack begins with %s", root)
		}
	}
	if fuel != cost.Fuel {
		t.Errorf("the profile has %d units of fuel, and the hook used %d", fuel, cost.Fuel)
	}
	if !names["main.tick"] || lists != 1 {
		t.Errorf("pod_list was called %d times, in the functions %v", lists, names)
	}
}
