package registry_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// soon is within what an operator is promised for a change to count. The
// Watcher needs a half of it at most; the rest is for a busy machine.
const soon = time.Second

// TestWatch follows a plugin's files through an ordinary life.
func TestWatch(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Hooks, "koordlet.json", koordlet)
	w := watch(t, dirs)
	if got := ids(w.List().Plugins); got != "koordlet" {
		t.Errorf("before Run: %q", got)
	}
	w.untilIDs(t, "koordlet")
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"a module", func() { write(t, dirs.Plugins, "10-a.wasm", module) }, "10-a koordlet"},
		{"a hook server", func() { write(t, dirs.Plugins, "20-b.json", hookServer("/b.sock")) }, "10-a 20-b koordlet"},
		{"a rename", func() {
			must(t, os.Rename(filepath.Join(dirs.Plugins, "10-a.wasm"), filepath.Join(dirs.Plugins, "30-a.wasm")))
		}, "20-b 30-a koordlet"},
		{"a removal", func() { must(t, os.Remove(filepath.Join(dirs.Hooks, "koordlet.json"))) }, "20-b 30-a"},
		{"switched off", func() { write(t, dirs.Plugins, "30-a.json", `{"enabled": false}`) }, "20-b"},
		{"all gone", func() { must(t, os.RemoveAll(dirs.Plugins)) }, ""},
		{"a new directory", func() {
			must(t, os.Mkdir(dirs.Plugins, 0o755))
			write(t, dirs.Plugins, "10-a.wasm", module)
		}, "10-a"},
	} {
		step.do()
		if _, took := w.untilIDs(t, step.want); step.name != "a new directory" {
			within(t, step.name, took, soon)
		}
	}
	write(t, dirs.Plugins, "20-b.wasm", module)
	_, took := w.untilIDs(t, "10-a 20-b")
	within(t, "a file of the new directory", took, soon)
	if w.log.String() != "" {
		t.Errorf("log:\n%s", w.log)
	}
}

// TestContentDecides: a file that is written again with what it had is no change.
func TestContentDecides(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Plugins, "README", "#")
	w.quiet(t, soon)
	write(t, dirs.Plugins, "10-a.wasm", module+"\x00\x00")
	w.until(t, "the other module", func(list []registry.Description) bool { return list[0].Digest == digestOf(module+"\x00\x00") })
}

// undisturbed calls try again if it finds a problem after the machine has stalled: a file that is bad for a second counts as
// bad. try returns the longest time for which it has left one so.
func undisturbed(t *testing.T, try func() (problem string, bad time.Duration)) {
	t.Helper()
	for range 10 {
		problem, bad := try()
		if problem == "" {
			return
		}
		if bad < soon {
			t.Fatal(problem)
		}
	}
	t.Fatal("the machine stalls in each of ten attempts")
}

// TestHalfWritten: what is bad for a moment is neither reported nor counts.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	undisturbed(t, func() (problem string, bad time.Duration) {
		dirs := newDirs(t)
		write(t, dirs.Hooks, "koordlet.json", hookServer("/old.sock"))
		w := watch(t, dirs)
		w.untilIDs(t, "koordlet")
		for i, half := range []string{"", koordlet[:len(koordlet)/2]} {
			began := time.Now()
			write(t, dirs.Hooks, "koordlet.json", half)
			write(t, dirs.Hooks, fmt.Sprint("new", i, ".json"), half)
			time.Sleep(soon / 2)
			write(t, dirs.Hooks, fmt.Sprint("new", i, ".json"), "{}")
			bad = max(bad, time.Since(began))
		}
		write(t, dirs.Hooks, "koordlet.json", koordlet)
		w.until(t, "the new endpoint", func(list []registry.Description) bool {
			if list[0].Endpoint == "/var/run/koordlet/koordlet.sock" {
				return true
			}
			problem = fmt.Sprintf("a list that nobody asked for: %q %+v", ids(list), list)
			return false
		})
		w.quiet(t, soon)
		return problem + w.log.String(), bad
	})
}

// TestSlowlyWritten: what is bad for long but still being written is not reported.
func TestSlowlyWritten(t *testing.T) {
	t.Parallel()
	undisturbed(t, func() (problem string, bad time.Duration) {
		dirs := newDirs(t)
		w := watch(t, dirs)
		w.untilIDs(t, "")
		began := time.Now()
		for i := range 20 {
			write(t, dirs.Plugins, "10-a.wasm", strings.Repeat("x", i))
			bad, began = max(bad, time.Since(began)), time.Now()
			time.Sleep(soon / 10)
		}
		write(t, dirs.Plugins, "10-a.wasm", module)
		bad = max(bad, time.Since(began))
		w.untilIDs(t, "10-a")
		return w.log.String(), bad
	})
}

// TestBadFile is said once by name and reason, and the file counts again when it is good.
func TestBadFile(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Plugins, "10-a.json", `{"failure-policy": "Fail"}`)
	write(t, dirs.Hooks, "koordlet.json", koordlet)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a koordlet")
	bad := []string{
		write(t, dirs.Plugins, "10-a.json", `{"failure-policy": `),
		write(t, dirs.Hooks, "koordlet.json", `{"failure-policy": "fail"}`),
	}
	for _, path := range bad {
		w.untilLogged(t, path+": ")
	}
	w.untilIDs(t, "10-a! koordlet!")
	w.quiet(t, soon)
	write(t, dirs.Plugins, "30-c.wasm", module)
	w.untilIDs(t, "10-a! 30-c koordlet!")
	if n := strings.Count(w.log.String(), "level=ERROR"); n != len(bad) {
		t.Errorf("%d errors, want %d:\n%s", n, len(bad), w.log)
	}
	must(t, os.Remove(bad[1]))
	w.untilIDs(t, "10-a! 30-c")
	write(t, dirs.Plugins, "10-a.json", `{}`)
	w.until(t, "the policy that is good again", func(list []registry.Description) bool { return list[0].Policy == plugin.Ignore })
}

// TestBadFileWithoutAGoodOne is in the list at once when the proxy starts; later, once it has lasted.
func TestBadFileWithoutAGoodOne(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Plugins, "10-a.json", "{")
	w := watch(t, dirs)
	w.untilIDs(t, "10-a!")
	if w.log.String() != "" {
		t.Errorf("said at once:\n%s", w.log)
	}
	write(t, dirs.Plugins, "20-b.wasm", "")
	if _, took := w.untilIDs(t, "10-a! 20-b!"); took < soon/2 {
		t.Errorf("listed after %v", took)
	}
	for _, name := range []string{"10-a.json: is not JSON", "20-b.wasm: is not a WebAssembly module"} {
		w.untilLogged(t, filepath.Join(dirs.Plugins, name))
	}
}

// TestDuplicateKeepsTheFirst: the id is for the file that has it, and for the
// other one once that is gone.
func TestDuplicateKeepsTheFirst(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Hooks, "10-a.json", hookServer("/a.sock"))
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	path := write(t, dirs.Plugins, "10-a.wasm", module)
	w.untilLogged(t, path+`: id \"10-a\" is taken by `+filepath.Join(dirs.Hooks, "10-a.json"))
	write(t, dirs.Hooks, "10-a.json", hookServer("/b.sock"))
	w.until(t, "the first file's change", func(list []registry.Description) bool { return list[0].Endpoint == "/b.sock" })
	must(t, os.Remove(filepath.Join(dirs.Hooks, "10-a.json")))
	w.until(t, "the other file", func(list []registry.Description) bool { return len(list) == 1 && list[0].File == path })
}

// TestConfigMap swaps a directory of files by one symbolic link, as kubelet does
// with the files of a ConfigMap.
func TestConfigMap(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	mount := func(version, name, content string) {
		dir := filepath.Join(dirs.Hooks, "..2026_"+version)
		must(t, os.Mkdir(dir, 0o755))
		write(t, dir, name, content)
		must(t, os.Symlink("..2026_"+version, filepath.Join(dirs.Hooks, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dirs.Hooks, "..data_tmp"), filepath.Join(dirs.Hooks, "..data")))
	}
	mount("1", "koordlet.json", hookServer("/1.sock"))
	must(t, os.Symlink("..data/koordlet.json", filepath.Join(dirs.Hooks, "koordlet.json")))
	w := watch(t, dirs)
	w.untilIDs(t, "koordlet")
	mount("2", "koordlet.json", hookServer("/2.sock"))
	_, took := w.until(t, "the new endpoint", func(list []registry.Description) bool { return list[0].Endpoint == "/2.sock" })
	within(t, "the new endpoint", took, soon)
	must(t, os.RemoveAll(filepath.Join(dirs.Hooks, "..2026_1")))
	w.quiet(t, soon)
	if w.log.String() != "" {
		t.Errorf("log:\n%s", w.log)
	}
}

// TestDirectoryBecomesUntrusted: nothing new is believed, and what was stays.
func TestDirectoryBecomesUntrusted(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	w := watch(t, dirs)
	w.untilIDs(t, "10-a")
	must(t, os.Chmod(dirs.Plugins, 0o777))
	write(t, dirs.Plugins, "20-b.wasm", module)
	w.untilLogged(t, dirs.Plugins+": is writable by everyone")
	w.untilIDs(t, "10-a!")
	w.quiet(t, soon/2)
	must(t, os.Chmod(dirs.Plugins, 0o755))
	w.untilIDs(t, "10-a 20-b")
}

// TestDirectoryUntrustedAtTheStart: nothing is known of its plugins, which is said at
// once, and they are there as soon as the directory is mended.
func TestDirectoryUntrustedAtTheStart(t *testing.T) {
	t.Parallel()
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	write(t, dirs.Hooks, "koordlet.json", koordlet)
	must(t, os.Chmod(dirs.Plugins, 0o777))
	w := watch(t, dirs)
	if log := w.log.String(); !strings.Contains(log, `level=ERROR msg="plugin directory not read, its plugins stay as they are"`) || !strings.Contains(log, dirs.Plugins+": is writable by everyone") {
		t.Errorf("log:\n%s", log)
	}
	w.untilIDs(t, "koordlet")
	must(t, os.Chmod(dirs.Plugins, 0o755))
	_, took := w.untilIDs(t, "10-a koordlet")
	within(t, "the directory", took, soon)
}

// TestDirectories are made where they are missing, and waited for where they
// cannot be.
func TestDirectories(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "file", "")
	dirs := registry.Dirs{Plugins: filepath.Join(root, "a/plugins.d"), Hooks: filepath.Join(root, "file/hookserver.d")}
	w := watch(t, dirs)
	w.untilIDs(t, "")
	if info, err := os.Stat(dirs.Plugins); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	w.untilLogged(t, "dir="+dirs.Hooks)
	must(t, os.Remove(filepath.Join(root, "file")))
	must(t, os.MkdirAll(dirs.Hooks, 0o755))
	write(t, dirs.Hooks, "koordlet.json", koordlet)
	w.untilIDs(t, "koordlet")
	_, err := registry.Open(t.Context(), observe.Discard(), registry.Dirs{Plugins: dirs.Hooks, Hooks: dirs.Hooks + "/"}, nil)
	if err == nil || !strings.Contains(err.Error(), "are one directory") {
		t.Errorf("one directory for both: %v", err)
	}
}
