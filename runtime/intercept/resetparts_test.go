package intercept

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// Fields are in one part if runtimes write them together, or the kernel checks one against the other.
func TestPartsOfAnUpdate(t *testing.T) {
	for part, targets := range map[string][]string{
		"cpu.max":    {"cpu_quota", "cpu_period", "unified[cpu.max]", "unified[cpu.max.burst]"},
		"cpu.weight": {"cpu_shares", "unified[cpu.weight]", "unified[cpu.weight.nice]", "unified[cpu.idle]"},
		"memory.max": {"memory_limit_in_bytes", "memory_swap_limit_in_bytes", "unified[memory.max]", "unified[memory.swap.max]"},
		"cpuset":     {"cpuset_cpus", "cpuset_mems", "unified[cpuset.cpus]", "unified[cpuset.mems]"},
		"memory.low": {"unified[memory.low]"}, "pids.max": {"unified[pids.max]"},
	} {
		for _, target := range targets {
			if got := partOf(ledger.Field(target)); got != part {
				t.Errorf("%s is in the part %s, want %s", target, got, part)
			}
		}
	}
}
