package suite_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestTick has a plugin with a control loop: while one pod runs, the container of
// another yields to it, by a quota that goes through the runtime and by a file that
// CRI has no field for. The kernel holds both, and takes both back afterwards; a
// third pod keeps all that it has.
func TestTick(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Yield)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	yielding := staticPod("yielding", ticking("main", limits("500m", "64Mi")))
	yielding.Annotations = map[string]string{"yield.wasmproxy.io/quota": "10000"}
	control := staticPod("control", ticking("main", limits("500m", "64Mi")))
	for _, pod := range []*core.Pod{yielding, control} {
		kubelet.Apply(t, pod)
		kubelet.AwaitReady(t, pod)
	}
	alone, kept := kernelSettings(t, yielding), kernelSettings(t, control)
	expectYielding(t, yielding, "50000", "0")

	first := staticPod("first", ticking("main", limits("250m", "64Mi")))
	first.Labels = map[string]string{"yield.wasmproxy.io/first": ""}
	kubelet.Apply(t, first)
	kubelet.AwaitReady(t, first)
	awaitYielding(t, yielding, "10000", "1")
	time.Sleep(3 * time.Second) // of ticks, in which nothing changes
	expectYielding(t, yielding, "10000", "1")
	if diff := cmp.Diff(kept, kernelSettings(t, control)); diff != "" {
		t.Errorf("cgroup files of the pod that does not yield (-before +while the first runs):\n%s", diff)
	}

	kubelet.Remove(t, first)
	kubelet.AwaitGone(t, first)
	awaitYielding(t, yielding, "50000", "0")
	if diff := cmp.Diff(alone, kernelSettings(t, yielding)); diff != "" {
		t.Errorf("cgroup files of the pod that yielded (-before +after):\n%s", diff)
	}
	expectTicks(t, proxy, containerID(t, yielding))
}

// expectTicks demands that there were ticks, none of which failed, and that only two of
// them changed something, of the one container.
func expectTicks(t *testing.T, proxy *node.Proxy, container string) {
	t.Helper()
	changes := map[string]int{}
	for _, r := range records(t, proxy, "plugin changed field", "60-yield") {
		changes[r.Hook+" "+r.OtherID]++
	}
	want := map[string]int{"Tick " + container: 4} // two fields, there and back
	if !maps.Equal(changes, want) {
		t.Errorf("the plugin made these changes: %v, want %v", changes, want)
	}
	served := expectNoFailures(t, proxy)
	if ticks := served.Hooks["Tick"]; ticks < 5 {
		t.Errorf("there were %d ticks", ticks)
	}
}

func kernelSettings(t *testing.T, pod *core.Pod) map[string]string {
	t.Helper()
	all := map[string]string{}
	addSettings(t, all, pod)
	return all
}

func awaitYielding(t *testing.T, pod *core.Pod, quota, idle string) {
	t.Helper()
	node.Eventually(t, time.Minute, fmt.Sprintf("%s has quota %s and idle %s", pod.Name, quota, idle), func() error {
		return checkYielding(t, pod, quota, idle)
	})
}

func expectYielding(t *testing.T, pod *core.Pod, quota, idle string) {
	t.Helper()
	if err := checkYielding(t, pod, quota, idle); err != nil {
		t.Error(err)
	}
}

// checkYielding asks the kernel, and the runtime if it tells the quota.
func checkYielding(t *testing.T, pod *core.Pod, quota, idle string) error {
	t.Helper()
	group := cgroups(t, pod)["main"]
	var errs []error
	for file, want := range map[string]string{"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.idle": idle} {
		errs = append(errs, cgroupfs.Check(group, file, want))
	}
	if node.RuntimeKind().NoResources {
		return errors.Join(errs...)
	}
	status, err := node.DialCRI(t, node.RuntimeKind().Endpoint).ContainerStatus(t.Context(), &cri.ContainerStatusRequest{ContainerId: containerID(t, pod)})
	if got := fmt.Sprint(status.GetStatus().GetResources().GetLinux().GetCpuQuota()); err != nil || got != quota {
		errs = append(errs, fmt.Errorf("the runtime says that the quota of %s is %s, want %s (%v)", pod.Name, got, quota, err))
	}
	return errors.Join(errs...)
}
