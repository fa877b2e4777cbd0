package enforce

import (
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestNamePartners: an update of the proxy's own names what crun, containerd and runc take together, as the runtime has it.
func TestNamePartners(t *testing.T) {
	type resources = runtimeapi.LinuxContainerResources
	cpu := &resources{CpuQuota: 5000, CpuPeriod: 50000, CpuShares: 512}
	memory := func(limit, sum int64) *resources {
		return &resources{MemoryLimitInBytes: limit, MemorySwapLimitInBytes: sum}
	}
	for _, tt := range []struct {
		name              string
		update, has, want *resources
	}{
		{"nothing", &resources{}, cpu, &resources{}},
		{"shares", &resources{CpuShares: 2}, cpu, &resources{CpuShares: 2}},
		{"a quota", &resources{CpuQuota: 1000}, cpu, &resources{CpuQuota: 1000, CpuPeriod: 50000}},
		{"no quota", &resources{CpuQuota: -1}, cpu, &resources{CpuQuota: -1, CpuPeriod: 50000}},
		{"a period", &resources{CpuPeriod: 1000}, cpu, &resources{CpuQuota: 5000, CpuPeriod: 1000}},
		{"a period where there is no quota", &resources{CpuPeriod: 1000}, nil, &resources{CpuPeriod: 1000}},
		{"memory below the sum", memory(100, 0), memory(50, 200), memory(100, 200)},
		{"memory that is the sum", memory(200, 0), memory(50, 200), memory(200, 200)},
		{"memory above the sum", memory(300, 0), memory(50, 200), memory(300, 0)},
		{"memory with swap without end", memory(300, 0), memory(50, -1), memory(300, -1)},
		{"memory without end", memory(-1, 0), memory(50, 200), memory(-1, 0)},
		{"a sum", memory(0, 400), memory(50, 200), memory(50, 400)},
		{"both", memory(100, 400), memory(50, 200), memory(100, 400)},
		{"a sum that the runtime is to refuse", memory(100, 50), memory(50, 200), memory(100, 50)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if NamePartners(tt.update, tt.has); !proto.Equal(tt.update, tt.want) {
				t.Errorf("the update names %v, want %v", tt.update, tt.want)
			}
		})
	}
}
