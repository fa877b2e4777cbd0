package intercept_test

import (
	"context"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// doubling is a plugin that doubles the quota of containers, with these capabilities.
func doubling(hooks abi.HookSet, has abi.CapabilitySet) plugin.Member {
	return plugin.Member{ID: "10-doubling", Hooks: hooks, Capabilities: has, Rights: plugin.Rights{Declared: abi.AllCapabilities, Granted: has},
		Plugin: function(func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			quota, _ := ev.Int64(abi.Container, abi.Resources+abi.CPUQuota)
			return adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 2*quota)
		})}
}

// TestQuotaAbovePodIsRefused has a container that is to get more than its pod: it is made with
// kubelet's quota, and the log names both.
func TestQuotaAbovePodIsRefused(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{doubling(abi.HookSetOf(abi.PreCreateContainer), abi.DefaultGrant())}, withCgroups(fs))
	n.runPod()
	if sent := decodeSent[runtimeapi.CreateContainerRequest](n); sent.GetConfig().GetLinux().GetResources().GetCpuQuota() != 50_000 {
		t.Errorf("the runtime gets %v", sent.GetConfig().GetLinux().GetResources())
	}
	if log := n.log.String(); !strings.Contains(log, `cpu.max \"100000 100000\" would be above the pod's, \"50000 100000\"`) {
		t.Errorf("the log is\n%s", log)
	}
}
