package registry_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// TestUntrustedFiles can be written by more people than may decide what runs
// here, or are no files. None is read, and none makes the reader wait.
func TestUntrustedFiles(t *testing.T) {
	nobody := 65534
	outside := t.TempDir()
	must(t, os.Chmod(outside, 0o777))
	write(t, outside, "a.wasm", module)
	for _, test := range []struct {
		name, want string
		spoil      func(t *testing.T, path string) error
		wasm, json bool
	}{
		{"group-writable", "is writable by its group (mode 0664)", func(_ *testing.T, path string) error { return os.Chmod(path, 0o664) }, true, false},
		{"world-writable", "is writable by everyone (mode 0666)", func(_ *testing.T, path string) error { return os.Chmod(path, 0o666) }, true, true},
		{"someone's", "belongs to user 65534", func(t *testing.T, path string) error {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a file away")
			}
			return os.Chown(path, nobody, nobody)
		}, true, false},
		{"pipe", "is not a regular file", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		}, true, true},
		{"device", "is not a regular file", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path))
		}, true, true},
		{"link into an open directory", "which is writable by everyone (mode 0777)", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(outside, "a.wasm"), path))
		}, true, true},
		{"link to nothing", "no such file or directory", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink("nothing", path))
		}, true, true},
		{"link to itself", "too many levels of symbolic links", func(_ *testing.T, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(path, path))
		}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dirs := newDirs(t)
			files := map[string]bool{
				write(t, dirs.Plugins, "10-a.wasm", module):           test.wasm,
				write(t, dirs.Hooks, "b.json", hookServer("/x.sock")): test.json,
			}
			for path := range files {
				must(t, test.spoil(t, path))
			}
			list, _ := registry.Read(dirs)
			for _, d := range list {
				refused := d.Problem != nil && strings.HasPrefix(d.Problem.Error(), d.File+": ") && strings.Contains(d.Problem.Error(), test.want)
				if refused != files[d.File] {
					t.Errorf("%s: problem %v, want %q: %v", d.File, d.Problem, test.want, files[d.File])
				}
			}
		})
	}
}

// TestUntrustedDescription: what everyone may write says nothing of the plugin.
func TestUntrustedDescription(t *testing.T) {
	dirs := newDirs(t)
	write(t, dirs.Plugins, "10-a.wasm", module)
	path := write(t, dirs.Plugins, "10-a.json", "{}")
	must(t, os.Chmod(path, 0o666))
	if d := one(t, dirs); d.Problem == nil || !strings.HasPrefix(d.Problem.Error(), path+": is writable by everyone") {
		t.Errorf("problem %v", d.Problem)
	}
}

// TestUntrustedDirectories are not read at all.
func TestUntrustedDirectories(t *testing.T) {
	for mode, want := range map[os.FileMode][2]bool{0o755: {true, true}, 0o775: {false, true}, 0o777: {false, false}, os.ModeSticky | 0o777: {false, false}} {
		dirs := newDirs(t)
		write(t, dirs.Plugins, "a.wasm", module)
		write(t, dirs.Hooks, "b.json", hookServer("/x.sock"))
		var wantIDs []string
		for i, dir := range []string{dirs.Plugins, dirs.Hooks} {
			must(t, os.Chmod(dir, mode))
			if want[i] {
				wantIDs = append(wantIDs, string("ab"[i]))
			}
		}
		list, errs := registry.Read(dirs)
		if ids(list) != strings.Join(wantIDs, " ") || len(errs) != 2-len(wantIDs) {
			t.Errorf("mode %v: %q, %v, want %q", mode, ids(list), errs, wantIDs)
		}
		for _, err := range errs {
			if !strings.Contains(err.Error(), ".d: is writable by ") || !strings.Contains(err.Error(), fmt.Sprintf("(mode %04o)", mode.Perm())) {
				t.Errorf("error %v", err)
			}
		}
	}
}

// TestUntrustedParents: who can write to a directory above, or on the way of a link, decides
// what lies below.
func TestUntrustedParents(t *testing.T) {
	nobody := 65534
	for _, test := range []struct {
		name, want string
		spoil      func(dir string) error
		wasm, json bool // refused
	}{
		{"everyone", "which is writable by everyone (mode 0777)", func(dir string) error { return os.Chmod(dir, 0o777) }, true, true},
		{"everyone, but only owners may delete", "", func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, false, false},
		{"a group", "", func(dir string) error { return os.Chmod(dir, 0o775) }, false, false},
		{"another user", "which belongs to user 65534", func(dir string) error { return os.Chown(dir, nobody, nobody) }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.want != "" && test.json != test.wasm && os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			dirs := registry.Dirs{Plugins: below(t, test.spoil), Hooks: below(t, test.spoil)}
			_, errs := registry.Read(registry.Dirs{Plugins: dirs.Plugins})
			if refused := len(errs) > 0; refused != test.wasm || refused && !strings.Contains(errs[0].Error(), test.want) {
				t.Errorf("the plugin directory: %v", errs)
			}
			list, errs := registry.Read(registry.Dirs{Hooks: dirs.Hooks})
			if refused := len(list) == 0; refused != test.json || refused && !strings.Contains(errs[0].Error(), test.want) {
				t.Errorf("the hook directory: %q, %v", ids(list), errs)
			}
			if test.wasm && !test.json && ids(list) != "a! b" {
				t.Errorf("a module and a hook server in the hook directory: %q", ids(list))
			}
		})
	}
}

// below returns a directory with a module and a hook server, two below one that is spoilt.
func below(t *testing.T, spoil func(dir string) error) string {
	t.Helper()
	above := filepath.Join(t.TempDir(), "above")
	dir := filepath.Join(above, "between/plugins.d")
	must(t, os.MkdirAll(dir, 0o755))
	write(t, dir, "a.wasm", module)
	write(t, dir, "b.json", hookServer("/x.sock"))
	must(t, spoil(above))
	return dir
}

// TestUntrustedWayOfALink: a link of the plugin directory may lead out of it, as far as
// nobody else can put something in the way.
func TestUntrustedWayOfALink(t *testing.T) {
	dirs, outside := newDirs(t), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(outside, "open/own"), 0o755))
	must(t, os.Chmod(filepath.Join(outside, "open"), 0o777))
	write(t, filepath.Join(outside, "open/own"), "a.wasm", module)
	must(t, os.Mkdir(filepath.Join(outside, "own"), 0o755))
	write(t, filepath.Join(outside, "own"), "a.wasm", module)
	must(t, os.Symlink("own/a.wasm", filepath.Join(outside, "link.wasm")))
	for target, want := range map[string]string{
		"open/own/a.wasm":               "lies below " + outside + "/open, which is writable by everyone (mode 0777)",
		"own/../open/own/../own/a.wasm": "which is writable by everyone (mode 0777)",
		"own/a.wasm":                    "",
		"link.wasm":                     "",
	} {
		link := filepath.Join(dirs.Plugins, "a.wasm")
		_ = os.Remove(link)
		must(t, os.Symlink(filepath.Join(outside, target), link))
		if err := one(t, dirs).Problem; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a link to %s: %v", target, err)
		}
	}
	must(t, os.Symlink(filepath.Join(outside, "open/own"), filepath.Join(outside, "dir")))
	if err := registry.CheckTrust(filepath.Join(outside, "dir")); err == nil || !strings.Contains(err.Error(), "open, which is writable by everyone") {
		t.Errorf("a directory that is a link: %v", err)
	}
}
