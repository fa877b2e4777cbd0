package regular_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// TestRead has a file, and what is none: each error comes at once and does not name the path.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("file"), []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", path("link")); err != nil {
		t.Fatal(err)
	}
	if b, err := regular.Read(path("file"), 4, nil); string(b) != "1234" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	mine := errors.New("not mine")
	for _, c := range []struct {
		path, want string
		check      func(fs.FileInfo) error
		limit      int64
	}{
		{path("file"), "has 4 bytes, more than the 3 that are allowed", nil, 3},
		{path("file"), "not mine", func(fs.FileInfo) error { return mine }, 4},
		{path("pipe"), "is not a regular file (mode p", nil, 4},
		{path("link"), "is not a regular file (mode p", nil, 4},
		{dir, "is not a regular file (mode d", nil, 4},
		{"/dev/zero", "is not a regular file (mode D", nil, 4},
		{path("none"), "no such file or directory", nil, 4},
	} {
		_, err := regular.Read(c.path, c.limit, c.check)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.path, err, c.want)
		}
	}
}

// TestReadEndless has a file of the kernel whose size is 0 and whose content is longer.
func TestReadEndless(t *testing.T) {
	if _, err := regular.Read("/proc/self/status", 10, nil); err == nil || !strings.Contains(err.Error(), "has more than the 10 bytes") {
		t.Errorf("got %v", err)
	}
}

// TestReplace: a link is replaced and not followed, and nothing else is left in the directory, whether it works or not.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	for _, step := range []error{os.WriteFile(target, []byte("old"), 0o600), os.Symlink("target", link), regular.Replace(link, []byte("new"), 0o644)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	is(t, target, "old", 0o600)
	is(t, link, "new", 0o644)
	if all, err := os.ReadDir(dir); len(all) != 2 || err != nil {
		t.Errorf("the directory has %v, %v", all, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := regular.Replace(filepath.Join(dir, "full"), nil, 0o644); err == nil {
		t.Error("a directory was replaced")
	}
	if all, err := os.ReadDir(dir); len(all) != 3 || err != nil {
		t.Errorf("after an error the directory has %v, %v", all, err)
	}
}

// TestRewrite: the file keeps its mode, and its owner if root writes it. A new one gets the mode that is given.
func TestRewrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := regular.Rewrite(path, []byte("new"), 0o640); err != nil {
		t.Fatal(err)
	}
	is(t, path, "new", 0o640)
	owner := os.Getuid()
	if owner == 0 {
		owner = 65534
	}
	if err := os.Chown(path, owner, -1); err != nil {
		t.Fatal(err)
	}
	if err := regular.Rewrite(path, []byte("newer"), 0o600); err != nil {
		t.Fatal(err)
	}
	is(t, path, "newer", 0o640)
	info, err := os.Stat(path)
	if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != owner {
		t.Errorf("the owner is not %d: %v, %v", owner, info, err)
	}
}

func is(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != content {
		t.Errorf("%s: got %q, %v, want %q", path, text, err, content)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
		t.Errorf("%s: got %v, %v, want the mode %v", path, info, err, mode)
	}
}
