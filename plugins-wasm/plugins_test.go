package plugins

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// maxSize is what a plugin may have, in bytes.
const maxSize = 54 << 10

// TestFixtures plays the fixtures of each plugin, which its own tests play to the
// source, to the committed plugin in the proxy's own engine, with the default grant.
func TestFixtures(t *testing.T) {
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	for _, p := range All() {
		files, err := filepath.Glob(filepath.Join(p.Name, "testdata", "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("%s has no fixtures", p.Name)
		}
		kept, err := engine.Load(t.Context(), p.Name, p.Module, wasm.PluginOptions{}) // so that the code is compiled once
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close(t.Context())
		for _, file := range files {
			play(t, engine, p, file)
		}
	}
}

func play(t *testing.T, engine *wasm.Engine, p Plugin, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := fixture.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(p.Name+"/"+c.Name, func(t *testing.T) {
			got, err := simulate.RunCase(t.Context(), c, func(o simulate.LoadOptions) (plugin.Plugin, error) {
				return engine.Load(t.Context(), p.Name, p.Module, wasm.PluginOptions{
					Timeout: time.Minute, // a machine that stalls breaks no limit
					Config:  []byte(o.Config), Granted: o.Granted, Features: o.Features, Observer: o.Observer, KV: o.KV, Metrics: o.Metrics,
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Want.Compare(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestManyRules gives the plugins whose settings have rules for single namespaces a thousand of them: reading them
// must not take more fuel than the limit of wp_configure.
func TestManyRules(t *testing.T) {
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	namespaces, annotations := map[string]any{}, map[string]string{}
	for i := range 1000 {
		name := fmt.Sprintf("team-%d", i)
		namespaces[name] = map[string]any{"registries": []string{"registry.example/" + name}}
		annotations["example.com/"+name] = name
	}
	for _, p := range All() {
		config := map[string]any{
			"image-policy":        map[string]any{"namespaces": namespaces},
			"default-annotations": map[string]any{"defaults": []any{map[string]any{"namespaces": []string{"x"}, "annotations": annotations}}},
		}[p.Name]
		if config == nil {
			continue
		}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := engine.Load(t.Context(), p.Name, p.Module, wasm.PluginOptions{Config: text})
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		loaded.Close(t.Context())
	}
}

// TestAll looks whether each folder with a plugin is carried, small, and has a manual.
func TestAll(t *testing.T) {
	modules, err := filepath.Glob("*/*.wasm")
	if err != nil || len(modules) != len(All()) {
		t.Errorf("%q are there, and %d are carried: %v", modules, len(All()), err)
	}
	for _, p := range All() {
		if len(p.Module) > maxSize {
			t.Errorf("%s has %d bytes, want at most %d", p.Name, len(p.Module), maxSize)
		}
		if _, err := os.Stat(filepath.Join(p.Name, "README.md")); err != nil {
			t.Error(err)
		}
	}
}

// TestValuesOfOlderPods wants of each plugin that sets values of running pods or containers that it asks for them in
// Synchronize, too: for those that are older than the plugin, or were made in a bypass. A plugin that sets all values in
// Tick does so anyway. Its manual names the grant that this needs.
func TestValuesOfOlderPods(t *testing.T) {
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close(t.Context())
	set := 0
	for _, p := range All() {
		loaded, err := engine.Load(t.Context(), p.Name, p.Module, wasm.PluginOptions{})
		if err != nil {
			t.Fatal(err)
		}
		manifest := loaded.Manifest()
		loaded.Close(t.Context())
		declared, _ := manifest.Declared()
		if !declared.Has(abi.WriteResources) && !declared.Has(abi.WriteUnified) && !declared.Has(abi.CgroupWrite) {
			continue
		}
		set++
		again := abi.Synchronize
		if manifest.HookSet() == abi.HookSetOf(abi.Tick) {
			again = abi.Tick
		}
		if !manifest.HookSet().Has(again) || !declared.Has(abi.UpdateOthers) || !declared.Has(abi.StoreRead) {
			t.Errorf("%s sets values, and cannot set those of older pods: hooks %v, capabilities %v", p.Name, manifest.HookSet().Names(), declared.Names())
		}
		manual, err := os.ReadFile(filepath.Join(p.Name, "README.md"))
		if err != nil || !strings.Contains(string(manual), "`update.others`") || !strings.Contains(string(manual), "| "+again.String()+" |") {
			t.Errorf("the README of %s does not name %v and its grant: %v", p.Name, again, err)
		}
	}
	if set != 5 {
		t.Errorf("%d plugins set values, want 5", set)
	}
}
