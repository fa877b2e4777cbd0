package systemd

import (
	"fmt"
	"strings"
	"testing"
)

func TestProperties(t *testing.T) {
	for _, tt := range []struct {
		cgroups, systemd int
		file             string
		held             map[string]string // by the kernel's name
		want             string
	}{
		{2, 252, "cpu.weight", map[string]string{"cpu.weight": "39"}, "CPUWeight=39"},
		{2, 252, "cpu.weight.nice", map[string]string{"cpu.weight": "110"}, "CPUWeight=110"},
		{2, 252, "cpu.idle", map[string]string{"cpu.idle": "1", "cpu.weight": "0"}, "CPUWeight=0"},
		{2, 252, "cpu.idle", map[string]string{"cpu.idle": "0", "cpu.weight": "100"}, "CPUWeight=100"},
		{2, 251, "cpu.idle", map[string]string{"cpu.idle": "1", "cpu.weight": "0"}, ""},
		{2, 252, "cpu.weight", map[string]string{"cpu.weight": "0"}, ""}, // of an idle group
		{2, 252, "cpu.max", map[string]string{"cpu.max": "13000 100000"}, "CPUQuotaPeriodUSec=100000 CPUQuotaPerSecUSec=130000"},
		{2, 252, "cpu.max", map[string]string{"cpu.max": "max 50000"}, "CPUQuotaPeriodUSec=50000 CPUQuotaPerSecUSec=18446744073709551615"},
		{2, 252, "cpu.max", map[string]string{"cpu.max": "17592186044415 1000000"}, "CPUQuotaPeriodUSec=1000000 CPUQuotaPerSecUSec=17592186050000"},
		{2, 241, "cpu.max", map[string]string{"cpu.max": "13000 100000"}, ""},
		{2, 252, "cpu.max", nil, ""},
		{2, 252, "cpu.max.burst", map[string]string{"cpu.max.burst": "1"}, ""},
		{2, 252, "memory.min", map[string]string{"memory.min": "4096"}, "MemoryMin=4096"},
		{2, 252, "memory.low", map[string]string{"memory.low": "0"}, "MemoryLow=0"},
		{2, 252, "memory.high", map[string]string{"memory.high": "max"}, "MemoryHigh=18446744073709551615"},
		{2, 252, "memory.max", map[string]string{"memory.max": "8192"}, "MemoryMax=8192"},
		{2, 252, "memory.swap.max", map[string]string{"memory.swap.max": "0"}, "MemorySwapMax=0"},
		{2, 252, "memory.zswap.max", map[string]string{"memory.zswap.max": "0"}, ""},
		{2, 253, "memory.zswap.max", map[string]string{"memory.zswap.max": "0"}, "MemoryZSwapMax=0"},
		{2, 252, "memory.oom.group", map[string]string{"memory.oom.group": "1"}, ""},
		{2, 252, "io.weight", map[string]string{"io.weight": "default 50\n8:16 200"}, "IOWeight=50 IODeviceWeight=[] IODeviceWeight=[{/dev/block/8:16 200}]"},
		{2, 252, "io.max", map[string]string{"io.max": "8:16 rbps=2097152 wbps=max riops=max wiops=120"},
			"IOReadBandwidthMax=[] IOReadBandwidthMax=[{/dev/block/8:16 2097152}] IOWriteBandwidthMax=[] IOReadIOPSMax=[] IOWriteIOPSMax=[] IOWriteIOPSMax=[{/dev/block/8:16 120}]"},
		{2, 252, "io.latency", map[string]string{"io.latency": "8:16 target=75000"}, "IODeviceLatencyTargetUSec=[] IODeviceLatencyTargetUSec=[{/dev/block/8:16 75000}]"},
		{2, 252, "pids.max", map[string]string{"pids.max": "max"}, "TasksMax=18446744073709551615"},
		{2, 252, "pids.max", map[string]string{"pids.max": "0"}, ""}, // systemd takes no 0
		{2, 252, "cpuset.cpus", map[string]string{"cpuset.cpus": "0-3,9"}, "AllowedCPUs=[15 2]"},
		{2, 252, "cpuset.mems", map[string]string{"cpuset.mems": "0"}, "AllowedMemoryNodes=[1]"},
		{2, 252, "cpuset.cpus", map[string]string{"cpuset.cpus": ""}, "AllowedCPUs=[]"},
		{2, 243, "cpuset.cpus", map[string]string{"cpuset.cpus": "0"}, ""},
		{1, 252, "cpu.weight", map[string]string{"cpu.shares": "512"}, "CPUShares=512"},
		{1, 252, "cpu.idle", map[string]string{"cpu.idle": "1"}, ""},
		{1, 252, "cpu.max", map[string]string{"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, "CPUQuotaPeriodUSec=100000 CPUQuotaPerSecUSec=18446744073709551615"},
		{1, 252, "cpu.max", map[string]string{"cpu.cfs_quota_us": "5000", "cpu.cfs_period_us": "50000"}, "CPUQuotaPeriodUSec=50000 CPUQuotaPerSecUSec=100000"},
		{1, 252, "memory.max", map[string]string{"memory.limit_in_bytes": "9223372036854771712"}, "MemoryLimit=18446744073709551615"},
		{1, 252, "io.weight", map[string]string{"blkio.weight": "500"}, "BlockIOWeight=500"},
		{1, 252, "io.bfq.weight", map[string]string{"blkio.bfq.weight": "100"}, "BlockIOWeight=100"},
		{1, 252, "pids.max", map[string]string{"pids.max": "10"}, "TasksMax=10"},
		{1, 252, "memory.high", map[string]string{"memory.high": "10"}, ""},
	} {
		var got []string
		for _, p := range propertiesOf(tt.cgroups, tt.systemd, tt.file, func(name string) string { return tt.held[name] }) {
			got = append(got, p.Name+"="+fmt.Sprint(p.Value.Value()))
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("v%d systemd %d %s %v:\n got %s\nwant %s", tt.cgroups, tt.systemd, tt.file, tt.held, text, tt.want)
		}
	}
}

func TestRoundQuota(t *testing.T) {
	for _, tt := range [][4]uint64{ // quota and period, before and after
		{50_000, 100_000, 50_000, 100_000},
		{12_345, 100_000, 13_000, 100_000},
		{100_001, 100_000, 101_000, 100_000},
		{1_000, 1_000_000, 10_000, 1_000_000},
		{1_000, 1_500, 1_005, 1_500},
		{1_000, 1_000, 1_000, 1_000},
		{1<<44 - 1, 100_000, 17_592_186_045_000, 100_000},
	} {
		if q, p := RoundQuota(tt[0], tt[1]); q != tt[2] || p != tt[3] {
			t.Errorf("%d %d is rounded to %d %d, want %d %d", tt[0], tt[1], q, p, tt[2], tt[3])
		}
	}
	for quota := uint64(1_000); quota < 2_000_000; quota = quota*5/4 + 7 {
		for period := uint64(1_000); period <= 1_000_000; period = period*3/2 + 11 {
			q, p := RoundQuota(quota, period)
			if again, period := RoundQuota(q, p); again != q || period != p {
				t.Errorf("%d %d is rounded to %d %d, and that to %d %d", quota, period, q, p, again, period)
			}
			if q*period < quota*p {
				t.Errorf("%d %d is rounded down to %d %d", quota, period, q, p)
			}
		}
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]int{"252.38-1~deb12u1": 252, "v245.4-1.fc32": 245, "257": 257, "": 0, "v": 0, "unknown": 0} {
		if got, err := parseVersion(text); got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
