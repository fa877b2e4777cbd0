package bypass_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
)

// On a full disk the file is made, though without the reason.
func TestMakeOnAFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bypass")
	if err := os.Symlink("/dev/full", file+".new"); err != nil { // whose writes end with ENOSPC
		t.Fatal(err)
	}
	if err := bypass.Make(file, "the reason"); err != nil {
		t.Fatal(err)
	}
	if s, err := bypass.Read(file); err != nil || !s.On || s.Reason != "" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// Another error is reported, and there is no file.
func TestMakeThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bypass")
	if err := bypass.Make(file, "the reason"); err == nil {
		t.Error("there is no error")
	}
}
