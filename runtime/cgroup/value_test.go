package cgroup

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

func TestParse(t *testing.T) {
	fs := map[int]*FS{1: tree(t, 1, nil), 2: tree(t, 2, nil)}
	tests := []struct {
		version           int
		file, value, want string
		code              abi.Errno
	}{
		{1, "cpu.idle", "1", "1", 0},
		{2, "cpu.idle", " 1\n", "1", 0},
		{2, "cpu.idle", "+01", "1", 0},
		{2, "cpu.idle", "-0", "0", 0},
		{2, "cpu.idle", "2", "", abi.Invalid},
		{2, "cpu.idle", "-1", "", abi.Invalid},
		{2, "cpu.idle", "", "", abi.Invalid},
		{2, "cpu.idle", "true", "", abi.Invalid},
		{2, "cpu.idle", "1 1", "", abi.Invalid},
		{2, "cpu.idle", "1\x00", "", abi.Invalid},
		{2, "cpu.idle", strings.Repeat(" ", 128) + "1", "", abi.TooLarge},
		{1, "cpu.max.burst", "20000", "20000", 0},
		{1, "cpu.max.burst", "17592186044415", "17592186044415", 0},
		{1, "cpu.max.burst", "17592186044416", "", abi.Invalid},
		{1, "cpu.max.burst", "18446744073709551616", "", abi.Invalid},
		{1, "cpu.max.burst", "max", "", abi.Invalid},
		{1, "cpu.max.burst", "1e4", "", abi.Invalid},
		{1, "cpu.bvt_warp_ns", "-1", "-1", 0},
		{2, "cpu.bvt_warp_ns", "2", "2", 0},
		{1, "cpu.bvt_warp_ns", "3", "", abi.Invalid},
		{2, "memory.high", "max", "max", 0},
		{2, "memory.high", "0104857600", "104857600", 0},
		{2, "memory.high", "100Mi", "", abi.Invalid},
		{2, "memory.high", "-1", "", abi.Invalid},
		{1, "memory.high", "104857600", "", abi.Unsupported},
		{2, "io.latency", "8:16 target=75000", "8:16 target=75000", 0},
		{2, "io.latency", "008:016   target=075", "8:16 target=75", 0},
		{2, "io.latency", "8:16 target=max", "8:16 target=max", 0},
		{2, "io.latency", "8:16", "", abi.Invalid},
		{2, "io.latency", "8 target=1", "", abi.Invalid},
		{2, "io.latency", "4096:0 target=1", "", abi.Invalid},
		{2, "io.latency", "0:1048576 target=1", "", abi.Invalid},
		{2, "io.latency", "8:16 target=" + strconv.FormatInt(math.MaxInt64, 10), "", abi.Invalid},
		{2, "io.latency", "8:16 target=1\n8:32 target=1", "", abi.Invalid},
		{1, "io.latency", "8:16 target=1", "", abi.Unsupported},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.version)+" "+tt.file+"="+tt.value, func(t *testing.T) {
			got, err := fs[tt.version].Parse(tt.file, tt.value)
			wantCode(t, err, tt.code)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			wantCode(t, fs[tt.version].Check(tt.file, tt.value), tt.code)
		})
	}
}

// Nothing but a v2 name of the table is a file: no v1 name, no path, no
// neighbour that moves processes or kills them.
func TestCheckDeniesOtherFiles(t *testing.T) {
	names := []string{
		"", ".", "..", "/", "cpu", "cpu.idle/", "./cpu.idle", "../cpu.idle", "/cpu.idle", "cpu.idle\x00", "cpu.idle\n", " cpu.idle",
		"CPU.IDLE", "cpu.shares", "cpu.weight", "cpu.max", "cpu.cfs_burst_us", "cpu.cfs_quota_us", "cgroup.procs", "cgroup.kill",
		"cgroup.freeze", "cgroup.subtree_control", "tasks", "release_agent", "notify_on_release", "devices.allow", "memory.max",
		strings.Repeat("cpu.idle", 10000),
	}
	for _, version := range []int{1, 2} {
		f := tree(t, version, map[string]string{cpuIdle: "0"})
		for _, name := range names {
			for _, value := range []string{"", "0", "1", "max"} {
				wantCode(t, f.Check(name, value), abi.Denied)
				wantCode(t, f.Write(pod, name, value), abi.Denied)
			}
			_, err := f.Read(pod, name)
			wantCode(t, err, abi.Denied)
		}
		wantPlain(t, f, cpuIdle, "0")
	}
}

// A hostile name or value does not fill a log through the error.
func TestErrorIsBounded(t *testing.T) {
	f := tree(t, 2, nil)
	long := strings.Repeat("\xff", 1<<20)
	for _, err := range []error{f.Write(long, long, long), f.Write(long, cpuIdle, long), f.Write(long, cpuIdle, "1"), f.Check(cpuIdle, long)} {
		if n := len(err.Error()); n > 4096 {
			t.Errorf("an error of %d bytes: %.300s", n, err)
		}
	}
}

func TestErrorNamesGroupFileAndValue(t *testing.T) {
	err := tree(t, 2, nil).Write("/kubepods/pod7", "cpu.idle", "7")
	want := `write cgroup "/kubepods/pod7" file "cpu.idle" value "7": invalid: want a whole number from 0 to 1`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var e *Error
	if !errors.As(err, &e) || e.Code != abi.Invalid || e.Op != "write" {
		t.Errorf("got %#v", e)
	}
}

// FuzzParse holds every parser to what its callers rely on: what comes out is
// printable, short, and parses to itself.
func FuzzParse(f *testing.F) {
	for _, v := range []string{"0", "1", "-1", " 07\t", "max", "8:16 target=75000", "8:16 target=max", "1\n2", "\x00", "9223372036854775808"} {
		for i := range files {
			f.Add(i, v)
		}
	}
	fs := &FS{version: 2}
	f.Fuzz(func(t *testing.T, i int, value string) {
		x := files[uint(i)%uint(len(files))]
		got, err := fs.Parse(x.name, value)
		if err != nil {
			var code abi.Errno
			if !errors.As(err, &code) || got != "" {
				t.Fatalf("%s: %q, error without a code: %v", x.name, got, err)
			}
			return
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) || len(got) > maxValue {
			t.Fatalf("%s: %q came out as %q", x.name, value, got)
		}
		if again, err := fs.Parse(x.name, got); err != nil || again != got {
			t.Fatalf("%s: %q came out as %q, and that as %q, %v", x.name, value, got, again, err)
		}
	})
}
