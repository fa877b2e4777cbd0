package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// TestPressure has a container be throttled for a fifth of the time. What the user writes to its cpu.pressure stays.
func TestPressure(t *testing.T) {
	r := newMemoryRuntime(&simulate.Cgroups{Dir: t.TempDir()})
	container, pod := "/kubepods/pod1/web", "/kubepods/pod1"
	if err := os.MkdirAll(filepath.Join(r.cgroups.Dir, container), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.cgroups.Dir, container, "cpu.max"), "50000 100000\n")
	r.containers["web"] = &memoryContainer{group: container, running: true}
	want := func(group, text string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(r.cgroups.Dir, group, cpuPressureFile))
		if err != nil || string(got) != text {
			t.Errorf("cpu.pressure of %s is %q, error %v, want %q", group, got, err, text)
		}
	}

	r.use()
	const full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
	for _, group := range []string{container, pod, "/"} {
		want(group, "some avg10=20.00 avg60=20.00 avg300=20.00 total=200000\n"+full)
	}
	const own = "some avg10=70.00 avg60=0.00 avg300=0.00 total=0\n"
	write(t, filepath.Join(r.cgroups.Dir, container, cpuPressureFile), own)
	r.use()
	want(container, own)
	want("/", "some avg10=20.00 avg60=20.00 avg300=20.00 total=400000\n"+full)
}
