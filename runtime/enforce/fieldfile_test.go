package enforce

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Each resource that the table has a file for is looked for there, and a key of unified in its own.
func TestFileOfEachField(t *testing.T) {
	want := map[abi.Field]string{
		abi.CPUShares: "cpu.weight", abi.CPUQuota: "cpu.max", abi.CPUPeriod: "cpu.max", abi.MemoryLimit: "memory.max",
		abi.MemorySwap: "memory.swap.max", abi.CpusetCpus: "cpuset.cpus", abi.CpusetMems: "cpuset.mems", abi.HugepageLimits: "",
	}
	for _, x := range rules.Files {
		for _, f := range x.Fields {
			target := fieldTarget(abi.Resources+f, "")
			got, ok := fileOf(target)
			if file, known := want[f]; !known || got.file != file && ok || ok != (file != "") {
				t.Errorf("%s is in %q, %v", target, got.file, ok)
			}
		}
	}
	got, ok := fileOf(fieldTarget(abi.Resources+abi.Unified, "memory.high"))
	if !ok || got.file != "memory.high" {
		t.Errorf("unified[memory.high] is in %q, %v", got.file, ok)
	}
	if got, ok := fileOf(Field("oom_score_adj")); ok {
		t.Errorf("oom_score_adj is in %q", got.file)
	}
}
