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
