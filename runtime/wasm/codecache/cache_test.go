package codecache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
)

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

// noProgram is one that cannot be started: who uses it compiles nothing.
const noProgram = "/none"

// What was compiled once is there for every later process, and is compiled
// again for other settings and other modules only.
func TestCompiledOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	first, _ := get(t, open(t, codecache.Options{Dir: dir}), "", "module")
	c := open(t, codecache.Options{Dir: dir, Program: noProgram})
	again, compiled := get(t, c, "", "module")
	if again != first || compiled != "compiled module" {
		t.Errorf("got %s with %q, want %s", again, compiled, first)
	}
	for _, other := range [][2]string{{"settings", "module"}, {"", "other"}} {
		if _, err := c.Get(t.Context(), other[0], []byte(other[1])); err == nil {
			t.Errorf("%q needed no compiler", other)
		}
	}
}

// An entry that is damaged in any place is compiled again.
func TestDamagedEntry(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"code": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "code"), []byte("compiled modulf"), 0o600)
		},
		"short":  func(dir string) error { return os.Truncate(filepath.Join(dir, "code"), 3) },
		"gone":   func(dir string) error { return os.Remove(filepath.Join(dir, "code")) },
		"more":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o600) },
		"digest": func(dir string) error { return os.Remove(filepath.Join(dir, "sha256")) },
		"link":   func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) },
		"digest that is a FIFO, which nobody writes to": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "sha256")), syscall.Mkfifo(filepath.Join(dir, "sha256"), 0o600))
		},
		"digest that never ends": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "sha256")), os.Symlink("/dev/zero", filepath.Join(dir, "sha256")))
		},
		"code that is a FIFO": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "code")), syscall.Mkfifo(filepath.Join(dir, "code"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, codecache.Options{})
			dir, _ := get(t, c, "", "module")
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			if _, compiled := get(t, c, "", "module"); compiled != "compiled module" {
				t.Errorf("got %q", compiled)
			}
			files, err := os.ReadDir(dir)
			if err != nil || len(files) != 2 {
				t.Errorf("the entry holds %v, %v; want code and digest", files, err)
			}
		})
	}
}

// The directory stays within its bounds: what was used longest ago goes, but nothing that
// was used a moment ago and may be about to be read.
func TestPruning(t *testing.T) {
	const one = 64 + int64(len("compiled a")) // an entry with its digest
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, codecache.Options{Dir: dir})
	ages := map[string]time.Duration{"a": time.Hour, "b": 3 * time.Hour, "c": 2 * time.Hour, "d": 10 * time.Second, "e": 20 * time.Second}
	entries := map[string]string{}
	age := func() {
		for module, age := range ages {
			used := time.Now().Add(-age)
			if err := os.Chtimes(entries[module], used, used); err != nil {
				t.Fatal(err)
			}
		}
	}
	for module := range ages {
		entries[module], _ = get(t, c, "", module)
	}
	left := func() (modules string) {
		for _, module := range []string{"a", "b", "c", "d", "e"} {
			if _, err := os.Stat(entries[module]); err == nil {
				modules += module
			}
		}
		return modules
	}
	for _, tt := range []struct {
		bytes int64
		want  string
	}{{5 * one, "abcde"}, {4*one + 1, "acde"}, {3 * one, "ade"}, {1, "de"}} {
		age()
		open(t, codecache.Options{Dir: dir, MaxBytes: tt.bytes})
		if got := left(); got != tt.want {
			t.Errorf("of %d bytes the entries %q are left, want %q", tt.bytes, got, tt.want)
		}
		for module := range ages {
			if !strings.Contains(tt.want, module) {
				delete(ages, module)
			}
		}
	}
}

// On a file system that has become read-only, as after an error of the disk, what was compiled before is found.
func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	want, _ := get(t, open(t, codecache.Options{Dir: dir}), "", "module")
	used := time.Now().Add(-time.Hour)
	if err := os.Chtimes(want, used, used); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skip("mounting needs root: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c := open(t, codecache.Options{Dir: dir, Program: noProgram, MaxBytes: 1})
	if found, err := c.Find("", []byte("module")); err != nil || found != want {
		t.Errorf("Find: %q, %v", found, err)
	}
	if found, err := c.Get(t.Context(), "", []byte("module")); err != nil || found != want {
		t.Errorf("Get: %q, %v", found, err)
	}
}

// Somebody may remove the directory while the process runs, to have everything compiled anew.
func TestRemovedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, codecache.Options{Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	get(t, c, "", "module")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
}

// Drafts of a process that died are removed once nobody can work at them; what
// is not ours stays.
func TestDrafts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	open(t, codecache.Options{Dir: dir})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"draft-old", "draft-new", "lost+found"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "draft-new" {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	open(t, codecache.Options{Dir: dir})
	var left []string
	names, _ := os.ReadDir(dir)
	for _, n := range names {
		left = append(left, n.Name())
	}
	if got := strings.Join(left, " "); got != "draft-new lost+found" {
		t.Errorf("left %q", got)
	}
}

// A module that takes long to compile holds up nobody who wants another one.
func TestSlowModuleDelaysItsOwnOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, codecache.Options{Dir: dir})
	if _, err := c.Find("", []byte("a")); !errors.Is(err, codecache.ErrNotCached) {
		t.Errorf("before it was compiled: %v", err)
	}
	slow, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.Get(slow, "asleep", []byte("a"))
		ended <- err
	}()
	drafts := filepath.Join(dir, "draft-*")
	for found, _ := filepath.Glob(drafts); len(found) == 0; found, _ = filepath.Glob(drafts) {
		time.Sleep(time.Millisecond)
	}
	compiled, _ := get(t, c, "", "a")
	if found, err := c.Find("", []byte("a")); err != nil || found != compiled {
		t.Errorf("found %q, %v; want %q", found, err, compiled)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// Many processes' worth of callers want the same and different modules at once.
func TestHammer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	caches := []*codecache.Cache{open(t, codecache.Options{Dir: dir, MaxBytes: 1}), open(t, codecache.Options{Dir: dir})}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			module := string(rune('a' + i%3))
			for _, c := range []*codecache.Cache{caches[1], caches[i%2]} {
				dir, err := c.Get(t.Context(), "", []byte(module))
				if err != nil {
					t.Error(err)
				} else if got := code(t, dir); got != "compiled "+module {
					t.Errorf("of %s there is %q", module, got)
				}
			}
		})
	}
	all.Wait()
}

// A directory that others could change is refused, and the error says why.
func TestDirectoryOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, dir string) error
		want string
	}{
		{"mode", func(_ *testing.T, dir string) error { return os.Chmod(dir, 0o750) }, "has mode 0750"},
		{"owner", func(t *testing.T, dir string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			return os.Chown(dir, 1234, -1)
		}, "does not belong to user 0"},
		{"parent", func(_ *testing.T, dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "others may write to it"},
		{"file", func(_ *testing.T, dir string) error {
			return errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600))
		}, "not a directory"},
		{"link", func(_ *testing.T, dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}, "is not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cache")
			open(t, codecache.Options{Dir: dir})
			if err := tt.make(t, dir); err != nil {
				t.Fatal(err)
			}
			_, err := codecache.Open(codecache.Options{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := codecache.Open(codecache.Options{Dir: "cache"}); err == nil {
		t.Error("a relative path is taken")
	}
}
