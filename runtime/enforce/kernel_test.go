package enforce

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
)

// What the kernel's files allow a group is told in CRI's terms.
func TestResourcesOfFiles(t *testing.T) {
	inherited := map[string]string{"cpuset.cpus": "", "cpuset.cpus.effective": "0-3", "cpuset.mems": "1"}
	for _, tt := range []struct {
		mode  string
		files []map[string]string
		want  *runtimeapi.LinuxContainerResources
	}{
		{"v2", []map[string]string{inherited, {"cpu.max": "max 100000", "memory.max": "1000", "memory.swap.max": "500", "cpu.weight": "7"}},
			&runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: -1, MemoryLimitInBytes: 1000, MemorySwapLimitInBytes: 1500, CpusetCpus: "0-3", CpusetMems: "1"}},
		{"v2", []map[string]string{{"cpu.max": "5000 100000", "memory.max": "max", "memory.swap.max": "0"}},
			&runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 5000, MemoryLimitInBytes: -1, MemorySwapLimitInBytes: -1}},
		{"v2", []map[string]string{{"cpu.max": "garbage", "memory.max": "", "memory.swap.max": "max"}}, &runtimeapi.LinuxContainerResources{}},
		{"v2", []map[string]string{{"memory.max": "1000"}}, &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 1000}},
		{"v1", []map[string]string{{
			"cpu.cfs_quota_us": "25000", "cpu.cfs_period_us": "100000", "cpu.shares": "205", "cpu.idle": "0", "memory.limit_in_bytes": "9223372036854771712",
		}}, &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 25000, CpuShares: 205, MemoryLimitInBytes: -1}},
		{"v1", []map[string]string{{"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000", "cpu.shares": "3", "cpu.idle": "1"}}, // the kernel's own shares
			&runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: -1}},
	} {
		root := t.TempDir()
		for _, files := range tt.files {
			for name, value := range files {
				dir := filepath.Join(root, "g")
				if tt.mode == "v1" {
					dir = filepath.Join(root, name[:len(name)-len(filepath.Ext(name))], "g")
				}
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(value+"\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
		fs, err := cgroup.Open(root, tt.mode)
		if err != nil {
			t.Fatal(err)
		}
		defer fs.Close()
		if got, _, err := (kernel{fs}).Resources("/g"); err != nil || !proto.Equal(got, tt.want) {
			t.Errorf("%s %v: %v, %v, want %v", tt.mode, tt.files, got, err, tt.want)
		}
		if _, _, err := (kernel{fs}).Resources("/gone"); !errors.Is(err, abi.NotFound) {
			t.Errorf("a group that is not there: %v", err)
		}
	}
}
