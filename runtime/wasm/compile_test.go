package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

// The test binary is also the program that compiles.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == CompilerCommand {
		if err := RunCompiler(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// diskEngine is an engine whose modules are compiled by other processes.
func diskEngine(t testing.TB, dir string, limits codecache.Limits) *Engine {
	t.Helper()
	e := newEngine(t, Options{CacheDir: dir})
	var err error
	if e.disk, err = codecache.Open(codecache.Options{Dir: dir, Limits: limits}); err != nil {
		t.Fatal(err)
	}
	return e
}

// codeFiles are the files of a cache that hold code, as the kernel knows them.
func codeFiles(t *testing.T, dir string) []os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*/wazero-*/*")
	if err != nil {
		t.Fatal(err)
	}
	var files []os.FileInfo
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, info)
	}
	return files
}

// What is loaded from the cache does what it does compiled here; wazero finds
// it there, and no engine that comes later compiles it again.
func TestLoadedFromDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var before []os.FileInfo
	for _, o := range []Options{{CacheDir: dir}, {CacheDir: dir, Compiler: "/none"}} {
		e := newEngine(t, o)
		for _, name := range []string{"quota", "everything"} {
			p, err := e.Load(t.Context(), name, wat(t, name), PluginOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(e.shared) != 0 {
			t.Errorf("%d modules are kept after their plugins were closed", len(e.shared))
		}
		after := codeFiles(t, dir)
		if len(after) != 2 {
			t.Fatalf("the cache holds %d modules", len(after))
		}
		for i := range before { // a module that wazero does not find is compiled and written anew
			if !os.SameFile(before[i], after[i]) || !before[i].ModTime().Equal(after[i].ModTime()) {
				t.Errorf("%s was written again", after[i].Name())
			}
		}
		before = after
	}
	e := newEngine(t, Options{CacheDir: dir, Compiler: "/none"})
	if _, err := e.Load(t.Context(), "p", wat(t, "noop"), PluginOptions{}); err == nil {
		t.Error("a module that the cache lacks was compiled here")
	}
	e.wazero = "another"
	if _, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{}); err == nil {
		t.Error("code of another version of wazero was loaded")
	}
}

// A plugin can be loaded only if it was compiled before.
func TestCompiledModuleLoads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	only := PluginOptions{Compiled: true}
	e := newEngine(t, Options{CacheDir: dir})
	if _, err := e.Load(t.Context(), "p", wat(t, "quota"), only); !errors.Is(err, ErrNotCompiled) {
		t.Errorf("before it was compiled: %v", err)
	}
	if _, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{Compiled: true, Interpret: true}); !errors.Is(err, ErrNotCompiled) {
		t.Errorf("interpreted: %v", err)
	}
	p, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	again, err := e.Load(t.Context(), "again", wat(t, "quota"), only)
	if err != nil {
		t.Fatalf("once it was compiled: %v", err)
	}
	defer again.Close(t.Context())
	if _, err := callPlugin(t.Context(), again, newEvent()); err != nil {
		t.Error(err)
	}
}

// The manifest of a custom section can be read whatever else is wrong with the module.
func TestStaticManifest(t *testing.T) {
	guest := string(wat(t, "noop")) // whose manifest is an export's
	name, content := abi.ManifestSection, `{"name": "it", "version": "1.0.0", "hooks": ["PreExec"]}`
	section := "\x00" + sized(sized(name)+content)
	early := binaryMagic + section + guest[len(binaryMagic):]
	for _, test := range []struct{ what, module, name string }{
		{"a whole module", guest + section, "it"},
		{"one that is cut short behind it", early[:len(early)-100], "it"},
		{"one with nonsense behind it", binaryMagic + section + "\x63\x01\x00", "it"},
		{"one that is cut short in it", (guest + section)[:len(guest+section)-1], ""},
		{"one without it", guest, ""},
		{"no module", "#!/bin/sh\n", ""},
		{"a bad manifest", binaryMagic + "\x00" + sized(sized(name)+"{"), ""},
	} {
		m, ok := StaticManifest([]byte(test.module))
		if m.Name != test.name || ok != (test.name != "") {
			t.Errorf("of %s: %q, %v", test.what, m.Name, ok)
		}
	}
}

// A manifest that only a function tells can be put into the module, once.
func TestEmbeddedManifest(t *testing.T) {
	for _, module := range [][]byte{wat(t, "noop"), nil} {
		in, err := Inspect(t.Context(), module, PluginOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := in.Embed(module)
		manifest, ok := StaticManifest(out)
		if want := in.Manifest.Name; manifest.Name != want || ok != (want != "") {
			t.Errorf("manifest %q, want %q", manifest.Name, want)
		}
		again, err := Inspect(t.Context(), out, PluginOptions{})
		if err != nil || len(again.Problems) != len(in.Problems) || string(again.Embed(out)) != string(out) {
			t.Errorf("the module with its manifest: %v, %v", again.Problems, err)
		}
	}
}

const binaryMagic = "\x00asm\x01\x00\x00\x00"

// Plugins made from one module have its code in memory once, and the last one
// to go takes it along. They serve side by side.
func TestSharedCode(t *testing.T) {
	e := newEngine(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	var plugins []plugin.Plugin
	for range 3 {
		p, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{})
		if err != nil {
			t.Fatal(err)
		}
		plugins = append(plugins, p)
	}
	if len(e.shared) != 1 {
		t.Errorf("one module is there %d times", len(e.shared))
	}
	for len(plugins) > 0 {
		for _, p := range plugins {
			if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
				t.Errorf("%d plugins: %v", len(plugins), err)
			}
		}
		if err := plugins[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
		plugins = plugins[1:]
	}
	if len(e.shared) != 0 {
		t.Error("the module is kept after its last plugin was closed")
	}
}

// Plugins whose one module is on disk are loaded at the same moment, as after a restart:
// none meets code that another is still reading.
func TestSharedCodeIsLoadedAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p, err := newEngine(t, Options{CacheDir: dir}).Load(t.Context(), "p", wat(t, "quota"), PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	for range 20 {
		e := newEngine(t, Options{CacheDir: dir, Compiler: "/none"})
		var loads sync.WaitGroup
		for range 8 {
			loads.Go(func() {
				p, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := p.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		loads.Wait()
	}
}

// A plugin may be interpreted beside others that are compiled.
func TestInterpretedPlugin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	e := newEngine(t, Options{CacheDir: dir})
	for _, interpret := range []bool{true, false} {
		p, err := e.Load(t.Context(), "p", wat(t, "quota"), PluginOptions{Interpret: interpret})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(t.Context())
		if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
			t.Error(err)
		}
		g, err := p.(*guests).open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(fmt.Sprintf("%T", g.hook), "*interpreter."); got != interpret {
			t.Errorf("interpreted: %v, want %v", got, interpret)
		}
		g.close()
		if files := codeFiles(t, dir); (len(files) == 0) != interpret {
			t.Errorf("with interpret %v the cache holds %d modules", interpret, len(files))
		}
	}
}

// What is wrong with a module is said in the compiler's words.
func TestModuleThatDoesNotCompile(t *testing.T) {
	e := newEngine(t, Options{CacheDir: filepath.Join(t.TempDir(), "cache")})
	_, err := e.codeOf(t.Context(), settings{Pages: 16}, false, false, []byte("\x00asm\x01\x00\x00\x00\x01\x01"))
	wantError(t, err, "compiling: section type: ")
}

// BenchmarkLoadFromDisk is what a plugin costs at the start of the daemon if it
// was compiled before.
func BenchmarkLoadFromDisk(b *testing.B) {
	for name, path := range map[string]string{"quota": "../../testdata/wat/quota.wasm", "qos": "../../plugins-wasm/qos/qos.wasm"} {
		b.Run(name, func(b *testing.B) {
			module, err := os.ReadFile(path)
			if err != nil {
				b.Fatal(err)
			}
			e := newEngine(b, Options{CacheDir: filepath.Join(b.TempDir(), "cache")})
			for b.Loop() {
				p, err := e.Load(b.Context(), name, module, PluginOptions{})
				if err != nil {
					b.Fatal(err)
				}
				_ = p.Close(b.Context())
			}
		})
	}
}
