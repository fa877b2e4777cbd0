package bypass_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
)

// Where the text cannot be written, as on a full disk, the file is made without the reason.
func TestMakeOnAFullDisk(t *testing.T) {
	for _, full := range []string{"/dev/full", "/proc/self/oom_score_adj"} { // writes of text end with ENOSPC, and with EINVAL
		file := filepath.Join(t.TempDir(), "bypass")
		if err := os.Symlink(full, file+".new"); err != nil {
			t.Fatal(err)
		}
		if err := bypass.Make(file, "the reason"); err != nil {
			t.Fatal(err)
		}
		if s, err := bypass.Read(file); err != nil || !s.On || s.Reason == "the reason" {
			t.Errorf("%s: got %+v, %v", full, s, err)
		}
	}
}

// Another error is reported, and no file is left.
func TestMakeThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bypass")
	if err := bypass.Make(file, "the reason"); err == nil {
		t.Error("there is no error")
	}
	file = filepath.Join(t.TempDir(), "bypass")
	if err := os.Mkdir(file, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := bypass.Make(file, "the reason"); err == nil {
		t.Error("there is no error")
	}
	if _, err := os.Lstat(file + ".new"); err == nil {
		t.Error("the file for the reason stays")
	}
}
