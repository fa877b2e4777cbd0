package cgroup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// hierarchy writes files of the test's group, by their paths beneath the root with the
// group left out: "cpu/cpu.shares" or "cpu.stat".
func hierarchy(t *testing.T, version int, held map[string]string) *FS {
	t.Helper()
	root := t.TempDir()
	for name, value := range held {
		controller, file := filepath.Split(name)
		path := filepath.Join(root, controller, pod, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return openMode(t, root, version)
}

func TestReadInTheFormOfV2(t *testing.T) {
	v1 := hierarchy(t, 1, map[string]string{
		"cpu/cpu.shares": "1024", "cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "cpu/cpu.idle": "1",
		"cpuset/cpuset.effective_cpus": "0-3", "memory/memory.usage_in_bytes": "4096", "memory/memory.limit_in_bytes": "9223372036854771712",
		"pids/pids.max": "max",
	})
	v2 := hierarchy(t, 2, map[string]string{"cpu.stat": "usage_usec 5\nuser_usec 3", "memory.pressure": "some avg10=0.00", "cpu.max": "50000 100000", "memory.high": "max"})
	for _, test := range []struct {
		fs         *FS
		file, want string
	}{
		{v1, "cpu.weight", "100"}, {v1, "cpu.max", "max 100000"}, {v1, "cpu.idle", "1"}, {v1, "cpuset.cpus.effective", "0-3"},
		{v1, "memory.current", "4096"}, {v1, "memory.max", "max"}, {v1, "pids.max", "max"},
		{v2, "cpu.stat", "usage_usec 5\nuser_usec 3"}, {v2, "memory.pressure", "some avg10=0.00"}, {v2, "cpu.max", "50000 100000"}, {v2, "memory.high", "max"},
	} {
		if got, err := test.fs.Read(pod, test.file); got != test.want || err != nil {
			t.Errorf("v%d %s: %q, %v, want %q", test.fs.version, test.file, got, err, test.want)
		}
	}
}

func TestReadRefused(t *testing.T) {
	v1, v2 := hierarchy(t, 1, map[string]string{"cpu/cpu.shares": "x", "memory/x": ""}), hierarchy(t, 2, map[string]string{"cpu.stat": ""})
	for _, test := range []struct {
		fs          *FS
		group, file string
		want        abi.Errno
	}{
		{v2, pod, "cgroup.procs", abi.Denied}, {v2, pod, "../../cpu.stat", abi.Denied}, {v2, pod, "", abi.Denied},
		{v2, pod, "io.stat", abi.Unsupported}, {v2, pod + "/none", "cpu.stat", abi.NotFound}, {v2, "/../x", "cpu.stat", abi.Invalid}, {v2, "/", "cpu.stat", abi.Invalid},
		{v1, pod, "memory.pressure", abi.Unsupported}, {v1, pod, "cpu.weight", abi.Invalid}, {v1, pod, "pids.current", abi.Unsupported},
		{v1, pod + "/none", "cpu.stat", abi.NotFound}, {v1, pod + "/none", "cpu.max", abi.NotFound}, {v1, pod, "memory.max", abi.Unsupported},
	} {
		if _, err := test.fs.Read(test.group, test.file); !errors.Is(err, test.want) {
			t.Errorf("v%d %s %q: %v, want %v", test.fs.version, test.group, test.file, err, test.want)
		}
	}
}

// A long file is cut, not refused.
func TestReadIsBounded(t *testing.T) {
	long := make([]byte, maxRead+100)
	for i := range long {
		long[i] = 'x'
	}
	fs := hierarchy(t, 2, map[string]string{"cpu.stat": string(long)})
	if got, err := fs.Read(pod, "cpu.stat"); len(got) != maxRead || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A file that the kernel returns in several reads is read whole.
func TestReadInSeveralPieces(t *testing.T) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := make([]byte, maxRead)
	if _, err := io.ReadFull(f, want); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	var buffer [maxRead]byte
	if got, err := readAll(int(f.Fd()), buffer[:]); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v; want the first %d", len(got), err, len(want))
	}
}
