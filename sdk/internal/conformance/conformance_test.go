package conformance

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

const folder = "../../../testdata/abi"

// languages are those that the program is there in.
var languages = []string{"wat", "go", "tinygo", "rust", "c"}

// vectors are all there are.
var vectors = sync.OnceValues(func() ([]Vector, error) {
	samples, err := ReadSamples(filepath.Join(folder, "samples.json"))
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "vectors", "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Vector
	for _, file := range files {
		list, err := Read(file, samples)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
})

func allVectors(t *testing.T) []Vector {
	t.Helper()
	all, err := vectors()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d vectors: %v", len(all), err)
	}
	return all
}

// program is the guest in an engine.
type program struct {
	engine *wasm.Engine
	module []byte
}

func open(t *testing.T, file string) program {
	t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	return program{engine, module}
}

// build makes the program in a language.
func build(t *testing.T, language string) program {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	guest.Run(t, ".", nil, filepath.Join(folder, "guest", "build.sh"), language, file)
	return open(t, file)
}

// keep holds the code while plugins of it come and go: the engine compiles it once.
func (p program) keep(t *testing.T) {
	t.Helper()
	loaded, err := p.engine.Load(t.Context(), "kept", p.module, wasm.PluginOptions{Config: []byte(`"ff00000000ff00000000"`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loaded.Close(context.Background()) })
}

// answer tells the program a case.
func (p program) answer(t *testing.T, c fixture.Case) fixture.Answer {
	t.Helper()
	got, err := c.Run(t.Context(), func(o fixture.Options) (plugin.Plugin, error) {
		return p.engine.Load(t.Context(), "conformance", p.module, wasm.PluginOptions{
			Config: []byte(o.Config), Granted: o.Granted, Features: o.Features, Log: o.Log, KV: o.KV, Metrics: o.Metrics,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func fixtureOf(t *testing.T, v Vector) fixture.Case {
	t.Helper()
	c, err := v.Fixture()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConformance plays every vector to the program in every language.
func TestConformance(t *testing.T) {
	all := allVectors(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			p := build(t, language)
			p.keep(t)
			for _, v := range all {
				t.Run(v.Name, func(t *testing.T) {
					c := fixtureOf(t, v)
					if err := c.Want.Compare(p.answer(t, c)); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}
