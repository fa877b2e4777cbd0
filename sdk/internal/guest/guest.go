// Package guest builds guests with the compilers of testdata/toolchain, and plays
// fixtures to them in the proxy's own engine. It is for tests of the SDKs that are
// not Go's; nothing else imports it.
package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Compiler returns the command that a script of testdata/toolchain sets up, such as
// "rust" or "clang". Without it the test fails: whoever builds guests needs it.
func Compiler(t testing.TB, script string) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../../../testdata/toolchain", script+".sh")
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("setting up %s: %v\n%s", script, err, stderr)
	}
	return strings.TrimSpace(string(out))
}

// Run runs a command in dir and returns what it prints. If it fails, so does the test.
func Run(t testing.TB, dir string, env []string, command string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(command), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Example returns the first block of a Markdown file that is in this language, after
// the first place that says after.
func Example(t testing.TB, file, after, language string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), after)
	_, rest, found := strings.Cut(rest, "\n```"+language+"\n")
	block, _, ended := strings.Cut(rest, "\n```\n")
	if !found || !ended {
		t.Fatalf("%s has no block in %s", file, language)
	}
	return block + "\n"
}

// id is the plugin's, from which its random numbers come.
const id = "conformance"

// Guest is a module in an engine of its own.
type Guest struct {
	Module []byte
	engine *wasm.Engine
}

// Open reads a guest from a file.
func Open(t *testing.T, file string) *Guest {
	t.Helper()
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(context.Background()) })
	return &Guest{module, engine}
}

// Keep holds the code while plugins of it come and go: the engine compiles it once.
func (g *Guest) Keep(t *testing.T, config string) {
	t.Helper()
	loaded, err := g.engine.Load(t.Context(), "kept", g.Module, wasm.PluginOptions{Config: []byte(config)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { loaded.Close(context.Background()) })
}

// Answer tells a case to a plugin newly loaded.
func (g *Guest) Answer(t *testing.T, c fixture.Case) fixture.Answer {
	t.Helper()
	got, err := simulate.RunCase(t.Context(), c, func(o simulate.LoadOptions) (plugin.Plugin, error) {
		return g.engine.Load(t.Context(), id, g.Module, wasm.PluginOptions{
			Timeout: time.Minute, // a machine that stalls breaks no limit
			Config:  []byte(o.Config), Granted: o.Granted, Features: o.Features, Observer: o.Observer, KV: o.KV, Metrics: o.Metrics,
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Play tells the guest in a file the cases of a fixture, and compares its answers.
func Play(t *testing.T, file, fixtures string) {
	t.Helper()
	text, err := os.ReadFile(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := fixture.Parse(fixtures, text)
	if err != nil {
		t.Fatalf("%s: %v", fixtures, err)
	}
	g := Open(t, file)
	g.Keep(t, cases[0].Config)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Want.Compare(g.Answer(t, c)); err != nil {
				t.Error(err)
			}
		})
	}
}
