package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestRefused loads modules that are no plugins. Each gets one clear error.
func TestRefused(t *testing.T) {
	tests := []struct{ guest, want string }{
		{"manifest-not-json", "manifest is not the JSON it should be"},
		{"manifest-unknown-hook", `manifest: hooks holds "PreLunch", which this host does not have`},
		{"manifest-too-long", "wp_manifest: the manifest has 16385 bytes, the limit is 16384"},
		{"manifest-outside", "wp_manifest: 100 bytes at 0x7fffffff are outside its memory"},
		{"start-trap", "start function: trapped: unreachable in boot"},
		{"configure-refuse", "wp_configure: failed: config is not good"},
		{"abi-major", "built for version 2.0 of the plugin ABI, this host has 1.0; a newer wasmproxy is needed"},
		{"unknown-import", "it imports wp1.make_coffee (i32) -> i32, which this host does not have; this host serves wp1 1.0, a newer wasmproxy may serve it"},
		{"wrong-signature", "it imports wp1.get as (i32, i32, i32) -> i32, but it is (i32, i32, i32, i32) -> i32"},
		{"wrong-export", "its export wp_hook has type () -> i32 instead of (i32) -> i32"},
		{"memory-hungry", "it needs 1000 pages (62.5 MiB) of memory to start with, its limit is 512 (32 MiB)"},
		{"passive-data", "data section at offset 0xdc: holds a passive segment; only active segments are supported"},
		{"command", "build it as a library: go and tinygo build -buildmode=c-shared"},
		{"no-memory", "it does not export its memory as memory"},
		{"empty", "it does not export wp_abi () -> i32; it does not export wp_hook (i32) -> i32; it has neither a custom section wp.manifest nor the export wp_manifest"},
	}
	engines(t, func(t *testing.T, e *Engine) {
		for _, tt := range tests {
			t.Run(tt.guest, func(t *testing.T) {
				_, err := e.Load(t.Context(), "10-"+tt.guest, wat(t, tt.guest), PluginOptions{})
				wantError(t, err, "loading plugin 10-"+tt.guest+": ")
				wantError(t, err, tt.want)
			})
		}
	})
}

func TestRefusedOptions(t *testing.T) {
	e := newEngine(t, Options{})
	_, err := e.Load(t.Context(), "p", wat(t, "noop"), PluginOptions{Config: make([]byte, MaxConfig+1)})
	wantError(t, err, "its config has 1048577 bytes, the limit is 1048576")
	_, err = e.Load(t.Context(), "p", make([]byte, abi.MaxModule+1), PluginOptions{})
	wantError(t, err, "module has 8388609 bytes, the limit is 8388608")
	_, err = e.Load(t.Context(), "p", []byte("#!/bin/sh\n"), PluginOptions{})
	wantError(t, err, "not a WebAssembly module")
	module := bytes.Clone(wat(t, "noop"))
	code := bytes.Index(module, []byte("\x41\x80\x80\x04\x0b")) // the body of wp_abi
	module[code] = 0x42                                         // i64.const
	_, err = e.Load(t.Context(), "p", module, PluginOptions{})
	wantError(t, err, "compiling: invalid function")
}

func TestConfigure(t *testing.T) {
	e := newEngine(t, Options{})
	load(t, e, "configure-refuse", PluginOptions{Config: []byte("good")})
	_, err := e.Load(t.Context(), "p", wat(t, "configure-refuse"), PluginOptions{Config: []byte("evil")})
	wantError(t, err, "config is not good")
}

// onLog returns an observer that calls f for each line that a guest logs, while the guest waits.
func onLog(f func()) observe.Observer {
	return observe.Func(func(_ context.Context, e observe.Event) {
		if _, ok := e.(*observe.PluginLog); ok {
			f()
		}
	})
}

// TestLoadEnds shows that a guest that never finishes starting is given up. It logs a line before it loops, and
// is held there until nobody waits for it any more: how fast it loops does not matter.
func TestLoadEnds(t *testing.T) {
	e := newEngine(t, Options{})
	load := func(ctx context.Context, logged func()) error {
		_, err := e.Load(ctx, "p", wat(t, "initialize-loop"), PluginOptions{Observer: onLog(logged)})
		return err
	}
	started := false
	for allowed, tries := 100*time.Millisecond, 0; !started && tries < 20; tries++ { // a busy machine may not come that far
		ctx, cancel := context.WithTimeout(t.Context(), allowed)
		allowed = min(2*allowed, startTimeout/2)
		err := load(ctx, func() {
			started = true
			<-ctx.Done()
		})
		cancel()
		if started {
			wantError(t, err, "_initialize: ran longer than the call allows")
		}
	}
	if !started {
		t.Error("the guest did not start")
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := load(ctx, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// withSection appends a custom section.
func withSection(module []byte, name string, content []byte) []byte {
	body := append(append(binary.AppendUvarint(nil, uint64(len(name))), name...), content...)
	return append(append(append(bytes.Clone(module), 0), binary.AppendUvarint(nil, uint64(len(body)))...), body...)
}

func TestManifestSection(t *testing.T) {
	e := newEngine(t, Options{})
	const manifest = `{"name":"from-section","version":"2.0.0","hooks":["PostStopContainer"],"description":"two\nlines","later":1}`
	module := withSection(wat(t, "manifest-not-json"), abi.ManifestSection, []byte(manifest))
	p, err := e.Load(t.Context(), "p", module, PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	if m := p.Manifest(); m.Name != "from-section" || m.Version != "2.0.0" || len(m.Hooks) != 1 || m.Description != "two lines" {
		t.Errorf("got manifest %+v, want the section's", m)
	}
	_, err = e.Load(t.Context(), "p", withSection(module, abi.ManifestSection, []byte(manifest)), PluginOptions{})
	wantError(t, err, "is a second wp.manifest")
	long := withSection(wat(t, "noop"), abi.ManifestSection, bytes.Repeat([]byte(" "), abi.MaxManifest+1))
	_, err = e.Load(t.Context(), "p", long, PluginOptions{})
	wantError(t, err, "manifest has 16385 bytes, the limit is 16384")
}

func TestManifest(t *testing.T) {
	tests := []struct{ manifest, want string }{
		{``, "not the JSON it should be"},
		{`{"name":"a","version":"1","hooks":["PreCreateContainer"]} x`, "not the JSON it should be"},
		{`{"version":"1","hooks":["PreCreateContainer"]}`, `name "" is not`},
		{`{"name":"a b","version":"1","hooks":["PreCreateContainer"]}`, `name "a b" is not`},
		{`{"name":"` + strings.Repeat("a", 64) + `","version":"1","hooks":["PreCreateContainer"]}`, "is not 1 to 63"},
		{`{"name":"a","hooks":["PreCreateContainer"]}`, `version "" is not`},
		{`{"name":"a","version":"1\n"}`, `version "1\n" is not`},
		{`{"name":"a","version":"1"}`, "hooks is empty"},
		{`{"name":"a","version":"1","hooks":["preCreateContainer"]}`, `hooks holds "preCreateContainer"`},
		{`{"name":"a","version":"1","hooks":"PreCreateContainer"}`, "not the JSON it should be"},
	}
	for _, tt := range tests {
		_, err := parseManifest([]byte(tt.manifest))
		wantError(t, err, tt.want)
	}
	m, err := parseManifest([]byte(`{"name":"a","version":"1","hooks":["PreCreateContainer"],"capabilities":["env"]}`))
	if err != nil || m.Capabilities[0] != "env" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// What a guest of a later minor version lacks here is told with the version that it was built for, if that shows.
func TestLaterMinorVersionWithItsFunction(t *testing.T) {
	module := bytes.Replace(wat(t, "unknown-import"), []byte("\x41\x80\x80\x04\x0b"), []byte("\x41\x81\x80\x04\x0b"), 1) // of wp_abi
	_, err := newEngine(t, Options{}).Load(t.Context(), "p", module, PluginOptions{})
	wantError(t, err, "it imports wp1.make_coffee (i32) -> i32, which this host does not have; it was built for wp1 1.1; this host serves wp1 1.0")
}

// A guest of a later minor version that uses nothing of it runs.
func TestLaterMinorVersion(t *testing.T) {
	if _, err := callPlugin(t.Context(), load(t, newEngine(t, Options{}), "abi-minor", PluginOptions{}), newEvent()); err != nil {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	for v, ok := range map[uint32]bool{abi.Version: true, abi.Version + 1: true, (abi.Major + 1) << 16: false, 0: false, 1 << 31: false} {
		if err := checkVersion(v); (err == nil) != ok {
			t.Errorf("version %#x: %v", v, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","version":"1","hooks":["PreCreateContainer"],"capabilities":["env"]}`))
	f.Add([]byte(`{"name":"a","version":"1","hooks":["PreRunPodSandbox","PreRunPodSandbox"],"sdk":"go\u202e"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseManifest(b)
		if err != nil {
			if m.Name != "" && m.Hooks != nil && len(b) > abi.MaxManifest {
				t.Error("a manifest beyond the limit was read")
			}
			return
		}
		if len(b) > abi.MaxManifest || len(m.Hooks) == 0 || m.Name == "" || m.Version == "" {
			t.Errorf("accepted %q", b)
		}
		for _, h := range m.Hooks {
			if _, ok := abi.HookByName(h.Hook); !ok {
				t.Errorf("accepted hook %q", h.Hook)
			}
		}
		for _, s := range []string{m.Name, m.Version, m.Description, m.License, m.SDK} {
			if s != plugin.Printable(s, len(s)) {
				t.Errorf("accepted %q, which is not printable", s)
			}
		}
	})
}
