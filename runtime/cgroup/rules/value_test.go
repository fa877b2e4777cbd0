package rules_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

func TestParse(t *testing.T) {
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
		{2, "io.latency", "8:16 target=01\n8:32 target=1\n", "8:16 target=1\n8:32 target=1", 0},
		{2, "io.latency", "8:16 target=1\n\n8:32 target=1", "", abi.Invalid},
		{2, "io.latency", "8:16 target=1\n8:32 target=1\n008:16 target=2", "", abi.Invalid},
		{2, "io.max", "8:16 riops=1\n8:16 rbps=2", "8:16 riops=1\n8:16 rbps=2", 0},
		{2, "io.max", "8:16 riops=1\n8:16 rbps=2 riops=3", "", abi.Invalid},
		{2, "io.weight", "100\ndefault 200", "", abi.Invalid},
		{1, "io.latency", "8:16 target=1", "", abi.Unsupported},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.version)+" "+tt.file+"="+tt.value, func(t *testing.T) {
			got, err := rules.Set(tt.version).Parse(rules.CgroupSet, abi.Container, tt.file, tt.value)
			if code := code(err); code != tt.code || got != tt.want {
				t.Errorf("got %q, code %v, error %v; want %q, code %v", got, code, err, tt.want, tt.code)
			}
		})
	}
}

// code is that which a plugin is answered.
func code(err error) (code abi.Errno) {
	errors.As(err, &code)
	return code
}

// The core's files move and kill processes of the whole node, and no other unlisted file is
// the container's own. Neither way reaches them.
func TestNoPluginWritesFilesOfTheCgroupCore(t *testing.T) {
	core := []string{
		"cgroup.procs", "cgroup.threads", "cgroup.kill", "cgroup.freeze", "cgroup.type", "cgroup.subtree_control",
		"cgroup.max.depth", "cgroup.max.descendants", "cgroup.pressure", "memory.reclaim", "foo.bar", "cpu.shares", "cpu.Weight",
		"memory.hihg", "cgroup.procs ", "cpu.weight.", "hugetlb.max", "hugetlb.2MB.rsvd", "hugetlb.2M.max", "hugetlb.cgroup.procs.max",
		"hugetlb.02MB.max", "hugetlb.-2MB.max", "hugetlb.0MB.max", "hugetlb.2MB.rsvd.rsvd.max",
	}
	for _, file := range core {
		for _, way := range []rules.Ways{rules.CgroupSet, rules.Unified} {
			for _, o := range []abi.Object{abi.Pod, abi.Container} {
				if got, err := rules.Set(2).Parse(way, o, file, "1"); code(err) != abi.Denied || got != "" {
					t.Errorf("%s of a %v by %v: %q, %v", file, o, way, got, err)
				}
			}
		}
	}
	for i := range rules.Files {
		if strings.HasPrefix(rules.Files[i].Name, "cgroup.") {
			t.Errorf("%s is on the list", rules.Files[i].Name)
		}
	}
}

// A refusal tells which files there are. Of a pod's limit it says why.
func TestRefusalNamesTheFilesThatMayBeWritten(t *testing.T) {
	for _, file := range []string{"cpu.max", "memory.max", "memory.swap.max", "cpuset.cpus", "hugetlb.2MB.max"} {
		_, err := rules.Set(2).Parse(rules.CgroupSet, abi.Pod, file, "1000")
		if want := "of a pod with cgroup_set, since the limits of a pod are kubelet's; write those of its containers"; code(err) != abi.Denied || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got  %v\nwant … %s", file, err, want)
		}
	}
	_, err := rules.Set(2).Parse(rules.CgroupSet, abi.Container, "memory.hihg", "1")
	for i := range rules.Files {
		if err == nil || !strings.Contains(err.Error(), rules.Files[i].Name) {
			t.Errorf("%s is not named: %v", rules.Files[i].Name, err)
		}
	}
}

// A file that v1 lacks says what it needs.
func TestRefusalNamesTheKernel(t *testing.T) {
	for i := range rules.Files {
		x := &rules.Files[i]
		if x.Needs == "" {
			t.Errorf("%s does not say which kernel it needs", x.Name)
		}
		if x.V1 != nil {
			continue
		}
		err := rules.Set(1).Check(rules.CgroupSet, abi.Container, x.Name)
		_, parsed := rules.Set(1).Parse(rules.CgroupSet, abi.Container, x.Name, "0")
		for _, err := range []error{err, parsed} {
			if code(err) != abi.Unsupported || !strings.Contains(err.Error(), "cgroup v2 and "+x.Needs) {
				t.Errorf("%s: %v", x.Name, err)
			}
		}
	}
}

func TestUnified(t *testing.T) {
	long := "8:1 target=1" + strings.Repeat("\n8:1 target=1", 64)
	tests := []struct {
		file, value, want string
		code              abi.Errno
	}{
		{"cpu.weight", "0100", "100", 0},
		{"cpu.weight", "0", "", abi.Invalid},
		{"cpu.weight", "10001", "", abi.Invalid},
		{"cpu.weight", "100\n200", "", abi.Invalid},
		{"cpu.weight.nice", "-20", "-20", 0},
		{"cpu.weight.nice", "20", "", abi.Invalid},
		{"cpu.max", "max", "max", 0},
		{"cpu.max", " 050000   100000 ", "50000 100000", 0},
		{"cpu.max", "999 100000", "", abi.Invalid},
		{"cpu.max", "50000 999", "", abi.Invalid},
		{"cpu.max", "50000 1000001", "", abi.Invalid},
		{"cpu.max", "50000 max", "", abi.Invalid},
		{"cpu.max", "50000 100000 1", "", abi.Invalid},
		{"cpu.max", "", "", abi.Invalid},
		{"cpu.max.burst", "20000", "20000", 0},
		{"cpu.idle", "1", "1", 0},
		{"cpu.uclamp.min", "12.5", "12.50", 0},
		{"cpu.uclamp.max", "100", "100.00", 0},
		{"cpu.uclamp.max", "max", "max", 0},
		{"cpu.uclamp.max", "100.01", "", abi.Invalid},
		{"cpu.uclamp.max", "1.234", "", abi.Invalid},
		{"cpu.uclamp.max", "1.", "", abi.Invalid},
		{"cpu.uclamp.max", "-1", "", abi.Invalid},
		{"memory.min", "1048576", "1048576", 0},
		{"memory.low", "max", "max", 0},
		{"memory.high", "100Mi", "", abi.Invalid},
		{"memory.max", "-1", "", abi.Invalid},
		{"memory.swap.max", "0", "0", 0},
		{"memory.zswap.max", "9223372036854775808", "", abi.Invalid},
		{"memory.oom.group", "1", "1", 0},
		{"memory.oom.group", "2", "", abi.Invalid},
		{"io.weight", "50", "default 50", 0},
		{"io.weight", "default 50\n8:16 100\n8:0 default\n", "default 50\n8:16 100\n8:0 default", 0},
		{"io.weight", "10001", "", abi.Invalid},
		{"io.weight", "default", "", abi.Invalid},
		{"io.weight", "sda 100", "", abi.Invalid},
		{"io.bfq.weight", "1001", "", abi.Invalid},
		{"io.max", "8:16 wiops=120 rbps=2097152", "8:16 rbps=2097152 wiops=120", 0},
		{"io.max", "8:16 rbps=max\n8:0 riops=1", "8:16 rbps=max\n8:0 riops=1", 0},
		{"io.max", "8:16 rbps=0", "", abi.Invalid},
		{"io.max", "8:16 rbps=1 rbps=2", "", abi.Invalid},
		{"io.max", "8:16 bps=1", "", abi.Invalid},
		{"io.max", "8:16", "", abi.Invalid},
		{"io.latency", long, "", abi.TooLarge},
		{"io.latency", strings.Repeat(" ", 129) + "8:1 target=1\n" + strings.Repeat("1", 129), "", abi.TooLarge},
		{"io.prio.class", "idle", "idle", 0},
		{"io.prio.class", "rt", "", abi.Invalid},
		{"pids.max", "100", "100", 0},
		{"pids.max", "4194305", "", abi.Invalid},
		{"cpuset.cpus", "0-3,7", "0-3,7", 0},
		{"cpuset.cpus", "", "", abi.Invalid},
		{"cpuset.mems", "1-0", "", abi.Invalid},
		{"hugetlb.2MB.max", "4194304", "4194304", 0},
		{"hugetlb.1GB.rsvd.max", "max", "max", 0},
		{"hugetlb.64KB.max", "-1", "", abi.Invalid},
		{"rdma.max", "mlx4_0 hca_object=max hca_handle=2", "mlx4_0 hca_handle=2 hca_object=max", 0},
		{"rdma.max", "mlx4_0 hca_handle=-1", "", abi.Invalid},
		{"misc.max", "sev 1\nsev_es max", "sev 1\nsev_es max", 0},
		{"misc.max", "sev", "", abi.Invalid},
		{"memory", "1", "", abi.Invalid},
		{"../memory.high", "1", "", abi.Invalid},
		{"", "1", "", abi.Invalid},
		{"..", "1", "", abi.Denied},
	}
	for _, tt := range tests {
		t.Run(tt.file+"="+tt.value, func(t *testing.T) {
			got, err := rules.Set(2).Parse(rules.Unified, abi.Container, tt.file, tt.value)
			if code := code(err); code != tt.code || got != tt.want {
				t.Errorf("got %q, code %v, error %v; want %q, code %v", got, code, err, tt.want, tt.code)
			}
		})
	}
	if _, err := rules.Set(1).Parse(rules.Unified, abi.Container, "memory.high", "1"); code(err) != abi.Unsupported {
		t.Errorf("on v1: %v", err)
	}
}

// FuzzParse holds every parser to what its callers rely on: what comes out is
// printable, short, and parses to itself.
func FuzzParse(f *testing.F) {
	for _, v := range []string{
		"0", "1", "-1", " 07\t", "max", "8:16 target=75000", "8:16 target=max", "1\n2", "\x00", "9223372036854775808", "1.5", "default 5\n8:16 5",
		"50000 100000", "8:0 riops=1 rbps=max", "mlx4_0 hca_handle=2", "sev 1", "0-3,7", "idle",
	} {
		for i := range rules.Files {
			f.Add(i, v)
		}
	}
	set := rules.Set(2)
	f.Fuzz(func(t *testing.T, i int, value string) {
		x := rules.Files[uint(i)%uint(len(rules.Files))]
		name := strings.Replace(x.Name, "<size>", "2MB", 1)
		got, err := set.Parse(rules.Unified, abi.Container, name, value)
		if err != nil {
			if code(err) == abi.OK || got != "" {
				t.Fatalf("%s: %q, error without a code: %v", name, got, err)
			}
			return
		}
		lines := strings.Split(got, "\n")
		if len(lines) > 1 && !x.Lines || len(lines) > rules.MaxLines {
			t.Fatalf("%s: %q came out with %d lines", name, value, len(lines))
		}
		for _, line := range lines {
			if line == "" || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) || len(line) > rules.MaxValue+len("default .00") {
				t.Fatalf("%s: %q came out as %q", name, value, got)
			}
		}
		if again, err := set.Parse(rules.Unified, abi.Container, name, got); err != nil || again != got {
			t.Fatalf("%s: %q came out as %q, and that as %q, %v", name, value, got, again, err)
		}
	})
}

// Numbers that a list names twice count once.
func TestNumbers(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5, "0-2,1-3": 4, "": 0, "x": 0, "3-1": 0, "0,x": 0} {
		if got := rules.Numbers(list); len(got) != want {
			t.Errorf("%q: %v, want %d numbers", list, got, want)
		}
	}
}
