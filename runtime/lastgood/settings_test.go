package lastgood_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
)

// TestSettingsComeBack byte for byte, for their own file alone, and not from a copy that others may have written.
func TestSettingsComeBack(t *testing.T) {
	f := newFiles(t)
	const file = "/etc/wasmproxy/wasmproxy.yaml"
	want := lastgood.Settings{File: file, Text: []byte("backend: \xff # \"a\"\n"), Since: time.Now().Round(0)}
	if _, err := lastgood.ReadSettings(f.data, file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
	s := f.open(t)
	if _, err := lastgood.ReadSettings(f.data, file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a copy: %v", err)
	}
	must(t, s.KeepSettings(want))
	got, err := lastgood.ReadSettings(f.data, file)
	if err != nil || got.File != want.File || string(got.Text) != string(want.Text) || !got.Since.Equal(want.Since) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := lastgood.ReadSettings(f.data, "/etc/other.yaml"); err == nil {
		t.Error("another file has the same copy")
	}
	must(t, s.KeepSettings(lastgood.Settings{File: "/etc/other.yaml", Text: []byte("mode: cri\n")}))
	copies, err := filepath.Glob(filepath.Join(f.data, "last-good", "settings-*.json"))
	if err != nil || len(copies) != 2 {
		t.Fatalf("the copies are %q, %v", copies, err)
	}
	copied := copies[slices.IndexFunc(copies, func(c string) bool { b, _ := os.ReadFile(c); return bytes.Contains(b, []byte(file)) })]
	content, err := os.ReadFile(copied)
	must(t, err)
	for name, damage := range map[string]func() error{
		"mode of the copy":         func() error { return os.Chmod(copied, 0o620) },
		"mode of its directory":    func() error { return os.Chmod(filepath.Dir(copied), 0o770) },
		"mode of the data-dir":     func() error { return os.Chmod(f.data, 0o777) },
		"a copy that is cut off":   func() error { return os.Truncate(copied, 20) },
		"a copy of a later format": func() error { return os.WriteFile(copied, []byte(`{"version": 2, "file": "`+file+`"}`), 0o600) },
	} {
		must(t, damage())
		if got, err := lastgood.ReadSettings(f.data, file); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		must(t, os.Chmod(f.data, 0o700))
		must(t, os.Chmod(filepath.Dir(copied), 0o700))
		must(t, os.WriteFile(copied, content, 0o600))
		must(t, os.Chmod(copied, 0o600))
	}
	if _, err := lastgood.ReadSettings(f.data, file); err != nil {
		t.Error(err)
	}
	must(t, s.Retain(nil)) // plugins go, and the settings stay
	if _, err := lastgood.ReadSettings(f.data, file); err != nil {
		t.Error(err)
	}
}
