package rules_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// After a value is written, the file shows want, which is held.
func TestHolds(t *testing.T) {
	page := os.Getpagesize()
	for _, tt := range []struct{ file, value, held, want string }{
		{"cpu.weight", "50", "100", "50"},
		{"cpu.max", "50000", "max 20000", "50000 20000"},
		{"cpu.max", "max", "50000 20000", "max 20000"},
		{"cpu.max", "50000", "", "50000 100000"},
		{"cpu.max", "50000 10000", "max 20000", "50000 10000"},
		{"cpu.uclamp.min", "12.50", "0.00", "12.50"},
		{"cpu.uclamp.max", "100.00", "max", "max"},
		{"cpu.uclamp.max", "99.99", "max", "max"},
		{"cpu.uclamp.max", "99.00", "max", "99.00"},
		{"memory.high", fmt.Sprint(10*page + 1), "max", fmt.Sprint(10 * page)},
		{"memory.high", "1", "max", "0"},
		{"memory.max", "max", "0", "max"},
		{"memory.max", "9223372036854775807", "0", "max"},
		{"hugetlb.2MB.max", "4194305", "max", "4194304"},
		{"hugetlb.1GB.rsvd.max", "1073741823", "max", "0"},
		{"hugetlb.2MB.max", "9223372036854775807", "0", "max"},
		{"cpuset.cpus", "3,0-1,2,7", "", "0-3,7"},
		{"cpuset.cpus", "7,5,6", "", "5-7"},
		{"io.weight", "default 50\n8:16 200", "default 100\n8:0 300\n8:16 100", "default 50\n8:0 300\n8:16 200"},
		{"io.weight", "8:0 default", "default 100\n8:0 300", "default 100"},
		{"io.max", "8:16 rbps=100", "", "8:16 rbps=100 wbps=max riops=max wiops=max"},
		{"io.max", "8:16 rbps=max", "8:16 rbps=100 wbps=max riops=7 wiops=max", "8:16 rbps=max wbps=max riops=7 wiops=max"},
		{"io.max", "8:16 rbps=max riops=max", "8:0 rbps=1 wbps=max riops=max wiops=max\n8:16 rbps=100 wbps=max riops=7 wiops=max", "8:0 rbps=1 wbps=max riops=max wiops=max"},
		{"io.max", "8:16 riops=4294967295 rbps=4294967295", "", "8:16 rbps=4294967295 wbps=max riops=max wiops=max"},
		{"io.latency", "8:16 target=75000", "", "8:16 target=75000"},
		{"io.latency", "8:16 target=0", "8:16 target=75000", ""},
		{"rdma.max", "mlx4_0 hca_object=5", "mlx4_0 hca_handle=2 hca_object=max", "mlx4_0 hca_handle=2 hca_object=5"},
		{"rdma.max", "mlx4_0 hca_handle=2147483647", "mlx4_0 hca_handle=2 hca_object=5", "mlx4_0 hca_handle=max hca_object=5"},
		{"misc.max", "sev 1", "sev max\nsev_es max", "sev 1\nsev_es max"},
	} {
		if !rules.Set(2).Holds(tt.file, tt.value, tt.want) {
			t.Errorf("%s: %q is not held by %q", tt.file, tt.value, tt.want)
		}
		if tt.held != tt.want && rules.Set(2).Holds(tt.file, tt.value, tt.held) {
			t.Errorf("%s: %q is held by %q", tt.file, tt.value, tt.held)
		}
	}
}

// CFQ's weights are coarser than v2's.
func TestHoldsOfV1(t *testing.T) {
	for held, want := range map[string]bool{"default 91": true, "default 100": false} {
		if rules.Set(1).Holds("io.weight", "default 100", held) != want {
			t.Errorf("io.weight that shows %q has a weight of 100: %v", held, !want)
		}
	}
}

func TestUndo(t *testing.T) {
	for _, tt := range []struct{ file, before, now, want string }{
		{"cpu.weight", "100", "100", ""},
		{"cpu.weight", "100", "50", "100"},
		{"cpu.max", "max 100000", "50000 20000", "max 100000"},
		{"cpuset.cpus", "", "0-1", "\n"},
		{"io.weight", "default 100", "default 50\n8:0 300", "8:0 default\ndefault 100"},
		{"io.max", "", "8:16 rbps=100 wbps=max riops=max wiops=max", "8:16 rbps=max wbps=max riops=max wiops=max"},
		{"io.max", "8:0 rbps=1 wbps=max riops=max wiops=max", "8:0 rbps=1 wbps=max riops=max wiops=max", ""},
		{"io.max", "8:0 rbps=1 wbps=max riops=max wiops=max", "8:0 rbps=2 wbps=2 riops=max wiops=max", "8:0 rbps=1 wbps=max riops=max wiops=max"},
		{"io.latency", "8:0 target=5", "", "8:0 target=5"},
		{"io.latency", "", "8:0 target=5", "8:0 target=max"},
		{"misc.max", "sev max", "sev 1", "sev max"},
		{"rdma.max", "", "mlx4_0 hca_handle=2 hca_object=5", "mlx4_0 hca_handle=max hca_object=max"},
	} {
		got := rules.Set(2).Undo(tt.file, tt.before, tt.now)
		if got != tt.want {
			t.Errorf("%s: from %q back to %q writes %q, want %q", tt.file, tt.now, tt.before, got, tt.want)
		}
		if got == "" || got == "\n" || tt.file == "rdma.max" { // a device's line stays
			continue
		}
		if _, err := rules.Set(2).Parse(rules.CgroupSet, abi.Container, tt.file, got); err != nil {
			t.Errorf("%s: %v", tt.file, err)
		}
	}
}

// Each weight of v2 has shares, and comes back from them; the defaults belong together.
func TestWeightsAreExactInV1(t *testing.T) {
	x, err := rules.Lookup("cpu.weight")
	if err != nil {
		t.Fatal(err)
	}
	for weight := range 10_000 {
		want := fmt.Sprint(weight + 1)
		writes, err := x.V1.Writes(want, rules.Held{"cpu.shares": "1024"})
		if err != nil || len(writes) != 1 {
			t.Fatalf("%s: %v, %v", want, writes, err)
		}
		if got, err := x.V1.Read(rules.Held{"cpu.shares": writes[0].Value}); got != want || err != nil {
			t.Fatalf("weight %s is %s shares, which are %s, %v", want, writes[0].Value, got, err)
		}
	}
}

func TestWritesOfV1(t *testing.T) {
	const none = "9223372036854771712"
	memory := func(limit, both string) rules.Held {
		return rules.Held{"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes": both}
	}
	cpu := rules.Held{"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}
	for _, tt := range []struct {
		file, value string
		held        rules.Held
		want        string
	}{
		{"cpu.weight", "100", nil, "cpu.shares=1024"},
		{"cpu.max", "70000", cpu, "cpu.cfs_quota_us=70000"},
		{"cpu.max", "70000 100000", cpu, "cpu.cfs_quota_us=70000"},
		{"cpu.max", "max 200000", cpu, "cpu.cfs_period_us=200000 cpu.cfs_quota_us=-1"},
		{"cpu.max", "70000 200000", cpu, "cpu.cfs_period_us=200000 cpu.cfs_quota_us=70000"},
		{"cpu.max", "7000 20000", cpu, "cpu.cfs_quota_us=7000 cpu.cfs_period_us=20000"},
		{"memory.max", "4096", rules.Held{"memory.limit_in_bytes": none}, "memory.limit_in_bytes=4096"},
		{"memory.max", "8192", memory("4096", "4096"), "memory.memsw.limit_in_bytes=8192 memory.limit_in_bytes=8192"},
		{"memory.max", "4096", memory("8192", "12288"), "memory.limit_in_bytes=4096 memory.memsw.limit_in_bytes=8192"},
		{"memory.max", "4096", memory(none, none), "memory.limit_in_bytes=4096"},
		{"memory.max", "max", memory("4096", none), "memory.limit_in_bytes=-1"},
		{"memory.max", "max", memory("4096", "8192"), "unsupported"}, // the 4096 of swap would be forgotten
		{"memory.swap.max", "8192", memory("4096", "4096"), "memory.memsw.limit_in_bytes=12288"},
		{"memory.swap.max", "max", memory("4096", "4096"), "memory.memsw.limit_in_bytes=-1"},
		{"memory.swap.max", "max", memory(none, none), "memory.memsw.limit_in_bytes=-1"},
		{"memory.swap.max", "9223372036854775807", memory("4096", "4096"), "memory.memsw.limit_in_bytes=-1"},
		{"memory.swap.max", "8192", memory(none, none), "unsupported"},
		{"hugetlb.2MB.max", "max", nil, "hugetlb.2MB.limit_in_bytes=-1"},
		{"hugetlb.2MB.rsvd.max", "2097152", nil, "hugetlb.2MB.rsvd.limit_in_bytes=2097152"},
		{"io.bfq.weight", "default 5\n8:0 7\n8:16 default", nil, "blkio.bfq.weight=5 blkio.bfq.weight_device=8:0 7 blkio.bfq.weight_device=8:16 default"},
		{"io.weight", "default 10000", nil, "blkio.weight=1000"},
		{"io.max", "8:0 rbps=5 wiops=max", nil, "blkio.throttle.read_bps_device=8:0 5 blkio.throttle.write_iops_device=8:0 0"},
		{"pids.max", "5", nil, "pids.max=5"},
	} {
		x, err := rules.Lookup(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		writes, err := x.V1.Writes(tt.value, tt.held)
		for _, w := range writes {
			got = append(got, w.Name+"="+w.Value)
		}
		if err != nil {
			got = []string{rules.CodeOf(err).Error()}
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.file, tt.value, got, tt.want)
		}
	}
}

func TestReadOfV1(t *testing.T) {
	const none = "9223372036854771712"
	for _, tt := range []struct {
		file string
		held rules.Held
		want string
	}{
		{"cpu.max", rules.Held{"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, "max 100000"},
		{"cpu.weight", rules.Held{"cpu.shares": "x"}, "invalid"},
		{"memory.max", rules.Held{"memory.limit_in_bytes": none}, "max"},
		{"memory.swap.max", rules.Held{"memory.limit_in_bytes": "4096", "memory.memsw.limit_in_bytes": "12288"}, "8192"},
		{"memory.swap.max", rules.Held{"memory.limit_in_bytes": "4096", "memory.memsw.limit_in_bytes": none}, "max"},
		{"hugetlb.2MB.max", rules.Held{"hugetlb.2MB.limit_in_bytes": "9223372036852678656"}, "max"},
		{"hugetlb.2MB.max", rules.Held{"hugetlb.2MB.limit_in_bytes": "2097152"}, "2097152"},
		{"io.bfq.weight", rules.Held{"blkio.bfq.weight": "100", "blkio.bfq.weight_device": "default 100\n8:0 7"}, "default 100\n8:0 7"},
		{"io.max", rules.Held{"blkio.throttle.read_bps_device": "8:0 5\n8:16 6", "blkio.throttle.write_iops_device": "8:16 9\n8:32 0"},
			"8:0 rbps=5 wbps=max riops=max wiops=max\n8:16 rbps=6 wbps=max riops=max wiops=9"},
	} {
		x, err := rules.Lookup(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.V1.Read(tt.held)
		if err != nil {
			got = rules.CodeOf(err).Error()
		}
		if got != tt.want {
			t.Errorf("%s of %v: %q, want %q", tt.file, tt.held, got, tt.want)
		}
	}
}
