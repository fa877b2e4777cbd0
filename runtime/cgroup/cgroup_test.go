package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// pod is the group that most tests use.
const pod = "/kubepods/burstable/pod1"

// tree makes a tree of plain files that looks like one group of a cgroup mount,
// and opens it. The files go by their v2 names; cpu.max holds a quota.
func tree(t *testing.T, version int, held map[string]string) *FS {
	t.Helper()
	root := t.TempDir()
	f := openMode(t, root, version)
	for name, value := range held {
		plain(t, f, name, value)
	}
	// v1 opens its controllers when it is opened itself.
	return openMode(t, root, version)
}

func openMode(t *testing.T, root string, version int) *FS {
	t.Helper()
	f, err := Open(root, []string{1: "v1", 2: "v2"}[version])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// plainPath is where a file of the test's group lies on disk.
func plainPath(t *testing.T, f *FS, name string) string {
	t.Helper()
	x := must(rules.Lookup(name))(t)
	if f.version == 2 {
		return filepath.Join(f.path, pod, name)
	}
	return v1Path(f, pod, x.V1.Names[0])
}

// v1Path is where v1 has a file of a group.
func v1Path(f *FS, group, name string) string {
	controller, _, _ := strings.Cut(name, ".")
	return filepath.Join(f.path, controller, group, name)
}

func plain(t *testing.T, f *FS, name, value string) {
	t.Helper()
	path := plainPath(t, f, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f.version == 1 && name == "cpu.max" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "cpu.cfs_period_us"), []byte("100000\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func wantPlain(t *testing.T, f *FS, name, want string) {
	t.Helper()
	b, err := os.ReadFile(plainPath(t, f, name))
	if got := strings.TrimSpace(string(b)); err != nil || got != want {
		t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
	}
}

// wantCode checks an error's code as a caller finds it.
func wantCode(t *testing.T, err error, want abi.Errno) {
	t.Helper()
	if want == abi.OK {
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		return
	}
	var got abi.Errno
	if !errors.As(err, &got) || got != want {
		t.Errorf("got error %v, code %v; want code %v", err, got, want)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOpen(t *testing.T) {
	empty := t.TempDir()
	notDir := filepath.Join(empty, "file")
	if err := os.WriteFile(notDir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, root, mode string
		version          int
		err              string
	}{
		{"plain v1", empty, "v1", 1, ""},
		{"plain v2", empty, "v2", 2, ""},
		{"plain auto", empty, "auto", 0, "no cgroup file system is mounted there; name the mode"},
		{"bad mode", empty, "v3", 0, `cgroup mode "v3" is not auto, v1 or v2`},
		{"no mode", empty, "", 0, `cgroup mode "" is not auto`},
		{"missing", filepath.Join(empty, "none"), "v2", 0, "no such file or directory"},
		{"not a directory", notDir, "v2", 0, "not a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := Open(tt.root, tt.mode)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), tt.root) {
					t.Fatalf("got %v, want an error that names %s and %q", err, tt.root, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Version() != tt.version {
				t.Errorf("version %d, want %d", f.Version(), tt.version)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// On systemd's nodes cpu is a link to cpu,cpuacct.
func TestOpenLinkedController(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "cpu,cpuacct", pod), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
		t.Fatal(err)
	}
	f := openMode(t, root, 1)
	plain(t, f, rules.CPUIdle, "0")
	if err := f.Write(t.Context(), pod, rules.CPUIdle, "1"); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
}

func TestOpenRefusesControllerOutside(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(root, "cpu")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(root, "v1"); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Errorf("got %v, want an error about the path that escapes", err)
	}
}

// Each file of v1 is in a controller that is opened.
func TestControllersAreThoseOfTheTables(t *testing.T) {
	for _, x := range slices.Concat(rules.Files, rules.Statistics) {
		if x.V1 == nil {
			continue
		}
		for _, name := range x.V1.Names {
			if controller, _, _ := strings.Cut(name, "."); !slices.Contains(controllers, controller) {
				t.Errorf("%s of %s is in the controller %q", name, x.Name, controller)
			}
		}
	}
}
