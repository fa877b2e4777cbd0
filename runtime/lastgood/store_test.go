package lastgood_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

const module = "\x00asm\x01\x00\x00\x00"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files are a directory of plugins and a Store.
type files struct {
	dirs registry.Dirs
	data string
}

func newFiles(t *testing.T) files {
	t.Helper()
	f := files{data: filepath.Join(t.TempDir(), "data")}
	f.dirs = registry.Dirs{Plugins: filepath.Join(t.TempDir(), "plugins.d"), Hooks: filepath.Join(t.TempDir(), "hookserver.d")}
	must(t, os.Mkdir(f.dirs.Plugins, 0o755))
	must(t, os.Mkdir(f.dirs.Hooks, 0o755))
	return f
}

func (f files) open(t *testing.T) *lastgood.Store {
	t.Helper()
	s, err := lastgood.Open(f.data)
	must(t, err)
	return s
}

// put writes files, and returns the descriptions of the plugins.
func (f files) put(t *testing.T, all map[string]string) []registry.Description {
	t.Helper()
	for name, content := range all {
		must(t, os.WriteFile(filepath.Join(filepath.Dir(f.dirs.Plugins), name), []byte(content), 0o644))
	}
	list, _ := registry.Read(f.dirs)
	return list
}

// modules are the digests of the modules that are kept.
func (f files) modules(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.data, "last-good", "modules"))
	must(t, err)
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".wasm"))
	}
	return names
}

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// TestVersionsComeBack whole, of every kind of plugin, when their files are gone.
func TestVersionsComeBack(t *testing.T) {
	f := newFiles(t)
	base := filepath.Base(f.dirs.Plugins)
	f.dirs.Hooks = filepath.Join(filepath.Dir(f.dirs.Plugins), "hookserver.d")
	must(t, os.Mkdir(f.dirs.Hooks, 0o755))
	list := f.put(t, map[string]string{
		base + "/10-plain.wasm": module, base + "/20-beside.wasm": module + "\x00\x01\x00",
		base + "/20-beside.json": `{"failure-policy": "Fail", "grant": ["env"], "config": {"a": 1}, "match": {"namespaces": ["a"]}, "order": "5"}`,
		base + "/30-named.json":  `{"wasm-module": "10-plain.wasm", "dry-run": true, "limits": {"memory": "64Ki"}, "timeout": "1s"}`,
		base + "/40-server.json": `{"remote-endpoint": "/run/x.sock", "runtime-hooks": ["PreRunPodSandbox"]}`,
		base + "/50-off.json":    `{"wasm-module": "none.wasm", "enabled": false}`,
		base + "/55-latin.wasm":  module, base + "/55-latin.json": "{\"config\": \"K\xf6ln\"}", // as an editor writes it that is not set to UTF-8
		"hookserver.d/60-k.json": `{"Remote-Endpoint": "/run/k.sock", "runtime-hooks": ["PreRunPodSandbox", "Other"], "unknown": 1}`,
	})
	if len(list) != 6 { // 10-plain.wasm is the module of 30-named
		t.Fatalf("the plugins are %+v", list)
	}
	s, since := f.open(t), time.Now().Round(0)
	for _, d := range list {
		must(t, s.Keep(lastgood.Version{Description: d, Since: since}))
	}
	must(t, os.RemoveAll(f.dirs.Plugins))
	all, ignored := f.open(t).All(f.dirs)
	if len(ignored) > 0 || len(all) != len(list) {
		t.Fatalf("%d versions, and %v", len(all), ignored)
	}
	for _, d := range list {
		v := all[d.ID]
		if !v.Description.Same(d) || v.Description.Source() != d.Source() || !v.Since.Equal(since) {
			t.Errorf("%s comes back as\n%+v, want\n%+v", d.ID, v, d)
		}
		if d.Digest == "" {
			continue
		}
		if b, err := v.Description.ReadModule(); err != nil || digestOf(string(b)) != d.Digest {
			t.Errorf("%s: its module is %q, %v", d.ID, b, err)
		}
	}
}

// TestModulesAreCollected when the last version that has them is gone, and what a writer left behind that died.
func TestModulesAreCollected(t *testing.T) {
	f := newFiles(t)
	base := filepath.Base(f.dirs.Plugins)
	s := f.open(t)
	for _, content := range []string{module, module + "\x00\x01\x00"} {
		for _, d := range f.put(t, map[string]string{base + "/10-a.wasm": content, base + "/20-b.wasm": content}) {
			must(t, s.Keep(lastgood.Version{Description: d}))
		}
		if got := f.modules(t); len(got) != 1 || got[0] != digestOf(content) {
			t.Errorf("the modules are %q", got)
		}
	}
	must(t, os.WriteFile(filepath.Join(f.data, "last-good", "modules", "new-123"), nil, 0o600))
	must(t, s.Retain(map[string]bool{"10-a": true}))
	if got := f.modules(t); len(got) != 1 {
		t.Errorf("the modules are %q", got)
	}
	must(t, s.Retain(nil))
	if got := f.modules(t); len(got) != 0 {
		t.Errorf("the modules are %q", got)
	}
	if all, ignored := s.All(f.dirs); len(all) > 0 || len(ignored) > 0 {
		t.Errorf("%v, %v", all, ignored)
	}
}

// TestModulesStayThatMayBeNeeded: while the versions cannot be read, nobody knows which modules are.
func TestModulesStayThatMayBeNeeded(t *testing.T) {
	f := newFiles(t)
	d := f.put(t, map[string]string{filepath.Base(f.dirs.Plugins) + "/10-a.wasm": module})[0]
	s, plugins := f.open(t), filepath.Join(f.data, "last-good", "plugins")
	must(t, s.Keep(lastgood.Version{Description: d}))
	for _, path := range []string{plugins, filepath.Join(plugins, "10-a.json")} {
		away := filepath.Join(t.TempDir(), "away")
		must(t, os.Rename(path, away))
		if path != plugins {
			must(t, os.Symlink("10-a.json", path)) // a loop
		}
		_ = s.Retain(map[string]bool{"10-a": true})
		must(t, os.RemoveAll(path))
		must(t, os.Rename(away, path))
		if all, ignored := s.All(f.dirs); !all["10-a"].Description.Same(d) || len(ignored) > 0 {
			t.Errorf("after %s was away: %v, %v", path, all, ignored)
		}
	}
}

// TestChangedModuleIsNotKept: what the version was loaded from is gone, and the version before stays.
func TestChangedModuleIsNotKept(t *testing.T) {
	f := newFiles(t)
	base := filepath.Base(f.dirs.Plugins)
	s := f.open(t)
	first := f.put(t, map[string]string{base + "/10-a.wasm": module})[0]
	must(t, s.Keep(lastgood.Version{Description: first}))
	second := f.put(t, map[string]string{base + "/10-a.wasm": module + "\x00\x01\x00"})[0]
	f.put(t, map[string]string{base + "/10-a.wasm": "text"})
	if err := s.Keep(lastgood.Version{Description: second}); err == nil {
		t.Error("a version is kept whose module nobody has")
	}
	if all, ignored := s.All(f.dirs); !all["10-a"].Description.Same(first) || len(ignored) > 0 {
		t.Errorf("%v, %v", all, ignored)
	}
}

// TestNothingIsKeptWithoutADirectory.
func TestNothingIsKeptWithoutADirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	s := lastgood.NewSaver("", observe.Discard())
	all, crashed := s.Begin(t.Context(), registry.Dirs{})
	s.Keep(lastgood.Version{Description: registry.Description{ID: "10-a", Digest: "none"}})
	s.Retain(nil)
	s.Close(t.Context())
	made, err := os.ReadDir(".")
	must(t, err)
	if len(all) > 0 || crashed || !s.Saved() || len(made) > 0 {
		t.Errorf("%v, crashed %v, saved %v; made: %v", all, crashed, s.Saved(), made)
	}
}

// TestRemove leaves what others have in the directory.
func TestRemove(t *testing.T) {
	f := newFiles(t)
	s := f.open(t)
	for _, d := range f.put(t, map[string]string{filepath.Base(f.dirs.Plugins) + "/10-a.wasm": module}) {
		must(t, s.Keep(lastgood.Version{Description: d}))
	}
	must(t, os.WriteFile(filepath.Join(f.data, "host.json"), nil, 0o600))
	must(t, lastgood.Remove(f.data))
	left, err := os.ReadDir(f.data)
	must(t, err)
	if len(left) != 1 || left[0].Name() != "host.json" {
		t.Errorf("left are %v", left)
	}
}

// TestPluginsInTheDirectoryAreLeftAlone: a directory of plugins may lie in that of last good versions, by any usual name.
func TestPluginsInTheDirectoryAreLeftAlone(t *testing.T) {
	for _, name := range []string{"plugins", "modules", "plugins.d"} {
		f := newFiles(t)
		f.dirs.Plugins = filepath.Join(f.data, name)
		must(t, os.MkdirAll(f.dirs.Plugins, 0o700))
		want := map[string]string{"10-a.wasm": module, "10-a.json": `{"failure-policy": "Fail"}`}
		for file, content := range want {
			must(t, os.WriteFile(filepath.Join(f.dirs.Plugins, file), []byte(content), 0o644))
		}
		s := f.open(t)
		for _, d := range f.put(t, nil) {
			must(t, s.Keep(lastgood.Version{Description: d}))
		}
		must(t, s.Retain(nil))
		must(t, lastgood.Remove(f.data))
		for file, content := range want {
			if got, err := os.ReadFile(filepath.Join(f.dirs.Plugins, file)); string(got) != content {
				t.Errorf("%s/%s: %q, %v", name, file, got, err)
			}
		}
	}
}

// TestUntrustedDirectory is refused.
func TestUntrustedDirectory(t *testing.T) {
	for _, name := range []string{".", "last-good", "last-good/plugins", "last-good/modules"} {
		f := newFiles(t)
		f.open(t)
		must(t, os.Chmod(filepath.Join(f.data, name), 0o777))
		if _, err := lastgood.Open(f.data); err == nil || !strings.Contains(err.Error(), f.data) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
