package cgroup

import (
	"errors"
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// If one value cannot be taken back, the other is back where it was.
func TestHoldFailsHalfWay(t *testing.T) {
	f := held(t, 2, "1", "40000", 50000)
	spoil(t, plainPath(t, f, rules.CPUBurst))
	h, err := f.SuspendForUpdate(t.Context(), pod, Update{Quota: 1000})
	if h != nil || err == nil {
		t.Fatalf("got %v, %v", h, err)
	}
	var e *rules.Error
	if !errors.As(err, &e) || e.Op != "suspend" || e.Group != pod || e.File != rules.CPUBurst {
		t.Errorf("error names %+v: %v", e, err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
	wantForgotten(t, f)
}

// A value that cannot be put back is named, and written again when the next suspension ends.
func TestRestoreFailsHalfWay(t *testing.T) {
	f := held(t, 2, "1", "40000", 50000)
	h := must(f.SuspendForUpdate(t.Context(), pod, Update{Quota: 1000}))(t)
	mend := spoil(t, plainPath(t, f, rules.CPUIdle))
	err := h.Restore(t.Context(), true)
	var e *rules.Error
	if !errors.As(err, &e) || e.Op != "restore" || e.Group != pod || e.File != rules.CPUIdle || e.Value != "1" {
		t.Fatalf("got %v", err)
	}
	wantPlain(t, f, rules.CPUBurst, "40000")
	mend()
	if got, err := f.Read(pod, rules.CPUIdle); err != nil || got != "0" {
		t.Errorf("reads %q, %v; want what the kernel holds", got, err)
	}
	if err := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t).Restore(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	wantPlain(t, f, rules.CPUIdle, "1")
	wantForgotten(t, f)
}

// What somebody wrote since a failed Restore is newer than what it kept,
// whether it came through here or not.
func TestFailedRestoreIsOvertaken(t *testing.T) {
	write := func(t *testing.T, f *FS, value string) {
		if err := f.Write(t.Context(), pod, rules.CPUBurst, value); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := func(t *testing.T, f *FS, value string) { plain(t, f, rules.CPUBurst, value) }
	tests := []struct {
		name, value string
		write       func(*testing.T, *FS, string)
	}{
		{"by a write", "30000", write},
		{"by a zero", "0", write},
		{"by somebody else", "30000", elsewhere},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := held(t, 2, "0", "40000", 50000)
			h := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t)
			mend := spoil(t, plainPath(t, f, rules.CPUBurst))
			if err := h.Restore(t.Context(), true); err == nil {
				t.Fatal("Restore wrote into a directory")
			}
			mend()
			tt.write(t, f, tt.value)
			if err := must(f.SuspendForUpdate(t.Context(), pod, Update{}))(t).Restore(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			wantPlain(t, f, rules.CPUBurst, tt.value)
			wantForgotten(t, f)
		})
	}
}

// spoil replaces a file by a directory, which neither reads nor writes as one,
// and returns what puts the file back.
func spoil(t *testing.T, path string) (mend func()) {
	t.Helper()
	if err := errors.Join(os.Rename(path, path+".real"), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := errors.Join(os.Remove(path), os.Rename(path+".real", path)); err != nil {
			t.Fatal(err)
		}
	}
}
