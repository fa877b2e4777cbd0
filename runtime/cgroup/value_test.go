package cgroup

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Nothing but a v2 name of the table is a file: no v1 name, no path, no
// neighbour that moves processes or kills them.
func TestCheckDeniesOtherFiles(t *testing.T) {
	names := []string{
		"", ".", "..", "/", "cpu", "cpu.idle/", "./cpu.idle", "../cpu.idle", "/cpu.idle", "cpu.idle\x00", "cpu.idle\n", " cpu.idle",
		"CPU.IDLE", "cpu.shares", "cpu.cfs_burst_us", "cpu.cfs_quota_us", "cgroup.procs", "cgroup.kill",
		"cgroup.freeze", "cgroup.subtree_control", "tasks", "release_agent", "notify_on_release", "devices.allow", "memory.limit_in_bytes", "memory.reclaim", "hugetlb.2MB.limit_in_bytes", "hugetlb.<size>.max",
		strings.Repeat("cpu.idle", 10000),
	}
	for _, version := range []int{1, 2} {
		f := tree(t, version, map[string]string{rules.CPUIdle: "0"})
		for _, name := range names {
			for _, value := range []string{"", "0", "1", "max"} {
				wantCode(t, f.Write(t.Context(), pod, name, value), abi.Denied)
			}
			_, err := f.Read(pod, name)
			wantCode(t, err, abi.Denied)
		}
		wantPlain(t, f, rules.CPUIdle, "0")
	}
}

// A hostile name or value does not fill a log through the error.
func TestErrorIsBounded(t *testing.T) {
	f := tree(t, 2, nil)
	long := strings.Repeat("\xff", 1<<20)
	for _, err := range []error{f.Write(t.Context(), long, long, long), f.Write(t.Context(), long, rules.CPUIdle, long), f.Write(t.Context(), long, rules.CPUIdle, "1")} {
		if n := len(err.Error()); n > 4096 {
			t.Errorf("an error of %d bytes: %.300s", n, err)
		}
	}
}

func TestErrorNamesGroupFileAndValue(t *testing.T) {
	err := tree(t, 2, nil).Write(t.Context(), "/kubepods/pod7", "cpu.idle", "7")
	want := `write cgroup "/kubepods/pod7" file "cpu.idle" value "7": invalid: want 0 or 1`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var e *rules.Error
	if !errors.As(err, &e) || e.Code != abi.Invalid || e.Op != "write" {
		t.Errorf("got %#v", e)
	}
}
