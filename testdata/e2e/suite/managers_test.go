package suite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheduler "k8s.io/component-helpers/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// testScheduler has a plugin raise the shares of a container. Its status shows them as a request, and
// the scheduler counts that, with the function that is called here.
func testScheduler(t *testing.T, api *node.APIServer) {
	pod := staticPod("raised", ticking("main", between("200m", "64Mi")))
	pod.Annotations = map[string]string{"set.wasmproxy.io/main.field.cpu_shares": "1024"}
	expectGroupFile(t, runPod(t, api, pod)["main"], "cpu/cpu.shares", "1024")
	node.Eventually(t, time.Minute, "the scheduler counts the plugin's shares", func() error {
		now, err := api.CoreV1().Pods("default").Get(t.Context(), pod.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		spec := now.Spec.Containers[0].Resources.Requests[core.ResourceCPU]
		if spec.String() != "100m" {
			t.Fatalf("the spec requests %s", spec.String())
		}
		status := now.Status.ContainerStatuses[0].Resources
		if status == nil || status.Requests.Cpu().String() != "1" {
			return fmt.Errorf("the status has %v", status)
		}
		counted := scheduler.PodRequests(now, scheduler.PodResourcesOptions{UseStatusResources: true})
		if counted.Cpu().String() != "1" {
			return fmt.Errorf("the scheduler counts %s", counted.Cpu())
		}
		return nil
	})
}

// testResizeBesidePluginsValues resizes the resource of which a plugin does not set the limit. That is
// done with one update per container, and the plugin's limit of the other resource holds. The status
// shows a plugin's fields, and kubelet's limit where the plugin has set the file.
func testResizeBesidePluginsValues(t *testing.T, proxy *node.Proxy, api *node.APIServer) {
	pod := staticPod("beside")
	pod.Annotations = map[string]string{
		"set.wasmproxy.io/quota.field.cpu_quota": "15000", "set.wasmproxy.io/quota-file.file.cpu.max": "15000",
		"set.wasmproxy.io/memory.field.memory_limit": "50331648", "set.wasmproxy.io/memory-file.file.memory.max": "50331648",
	}
	tests := []struct {
		name, cpu, memory       string // of the resize; 200m and 64Mi before
		cpuStatus, memoryStatus string
		quota, limit            string // of the kernel
	}{
		{"quota", "200m", "96Mi", "150m", "96Mi", "15000", "100663296"},
		{"quota-file", "200m", "96Mi", "200m", "96Mi", "15000", "100663296"},
		{"memory", "400m", "64Mi", "400m", "48Mi", "40000", "50331648"},
		{"memory-file", "400m", "64Mi", "400m", "64Mi", "40000", "50331648"},
	}
	sizes, statuses, before := map[string]core.ResourceList{}, map[string]core.ResourceList{}, map[string]int{}
	for _, test := range tests {
		pod.Spec.Containers = append(pod.Spec.Containers, ticking(test.name, between("200m", "64Mi")))
		sizes[test.name], statuses[test.name] = quantities(test.cpu, test.memory), quantities(test.cpuStatus, test.memoryStatus)
	}
	groups := runPod(t, api, pod)
	for _, test := range tests {
		before[test.name] = updates(t, proxy, pod, test.name)
	}
	patchLimits(t, api, pod, sizes)
	awaitResized(t, api, pod, statuses)
	time.Sleep(quiet)
	for _, test := range tests {
		expectGroupFile(t, groups[test.name], "cpu/cpu.cfs_quota_us", test.quota)
		expectGroupFile(t, groups[test.name], "memory/memory.limit_in_bytes", test.limit)
		if n := updates(t, proxy, pod, test.name) - before[test.name]; n != 1 {
			t.Errorf("the resize of container %s took %d updates, want 1", test.name, n)
		}
	}
}

// staticManagers has kubelet give CPUs and the memory of NUMA nodes to guaranteed pods alone.
func staticManagers(c *kubeletconfig.KubeletConfiguration) {
	staticCPUManager(c)
	memory := resource.MustParse("100Mi") // the policy wants just what is reserved
	c.KubeReserved["memory"] = memory.String()
	c.MemoryManagerPolicy = kubeletconfig.StaticMemoryManagerPolicy
	c.ReservedMemory = []kubeletconfig.MemoryReservation{{NumaNode: 0, Limits: core.ResourceList{core.ResourceMemory: memory}}}
}

// testExclusive has a plugin set the CPUs of a pod that gets one for itself, and those of another pod
// that loses it. The plugin's values hold, and the managers do as without. Without the plugin the kernel
// has what the managers say.
func testExclusive(t *testing.T, proxy *node.Proxy, api *node.APIServer) {
	last := strconv.Itoa(runtime.NumCPU() - 1) // kubelet reserves the first for itself
	shared := staticPod("shared", ticking("field", between("200m", "64Mi")), ticking("file", between("200m", "64Mi")))
	shared.Annotations = map[string]string{"set.wasmproxy.io/field.field.cpuset_cpus": last, "set.wasmproxy.io/file.file.cpuset.cpus": last}
	others := runPod(t, api, shared)
	node.Eventually(t, time.Minute, "the CPU manager has made its first updates", func() error {
		if updates(t, proxy, shared, "field") == 0 || updates(t, proxy, shared, "file") == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	time.Sleep(quiet) // the pod's sync may follow
	before := map[string]int{}
	for name := range others {
		before[name] = updates(t, proxy, shared, name)
	}
	exclusive := staticPod("exclusive", ticking("main", limits("1", "32Mi")))
	exclusive.Annotations = map[string]string{
		"set.wasmproxy.io/main.file.cpuset.cpus": "0", "set.wasmproxy.io/main.field.memory_limit": "25165824",
	}
	group := runPod(t, api, exclusive)["main"]
	node.Eventually(t, time.Minute, "kubelet takes the CPU from the other pod", func() error {
		var errs []error
		for name := range others {
			if updates(t, proxy, shared, name) == before[name] {
				errs = append(errs, fmt.Errorf("container %s is not updated", name))
			}
		}
		return errors.Join(errs...)
	})
	for _, other := range others {
		expectGroupFile(t, other, "cpuset/cpuset.cpus", last)
	}
	expectGroupFile(t, group, "cpuset/cpuset.cpus", "0")
	expectGroupFile(t, group, "cpuset/cpuset.mems", "0")
	expectGroupFile(t, group, "memory/memory.limit_in_bytes", "25165824")
	own, rest := assigned(t, api, exclusive)
	if own == "0" || own == rest {
		t.Fatalf("kubelet gave the pod the CPU %s and others %s, so that the plugin changes nothing", own, rest)
	}

	proxy.Remove(t, node.Setter)
	node.Eventually(t, time.Minute, "the CPUs and the memory are the managers' again", func() error {
		return errors.Join(
			cgroupfs.Check(group, "cpuset/cpuset.cpus", own), cgroupfs.Check(group, "cpuset/cpuset.mems", "0"),
			cgroupfs.Check(group, "memory/memory.limit_in_bytes", "33554432"),
			cgroupfs.Check(others["field"], "cpuset/cpuset.cpus", rest), cgroupfs.Check(others["file"], "cpuset/cpuset.cpus", rest),
		)
	})
}

// assigned returns the CPUs that kubelet's CPU manager has given to a pod's container main, and those
// that are left for pods without their own. The memory manager must have given it its memory.
func assigned(t *testing.T, api *node.APIServer, pod *core.Pod) (own, rest string) {
	t.Helper()
	uid := string(api.AwaitReady(t, pod.Name).UID)
	var cpu struct {
		DefaultCPUSet string
		Entries       map[string]map[string]string
	}
	var memory struct {
		Entries map[string]map[string][]struct {
			NUMAAffinity []int
			Size         int64
		}
	}
	for file, into := range map[string]any{"cpu_manager_state": &cpu, "memory_manager_state": &memory} {
		data, err := os.ReadFile(filepath.Join("/var/lib/kubelet", file))
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("reading kubelet's %s: %v", file, err)
		}
	}
	if blocks := memory.Entries[uid]["main"]; len(blocks) != 1 || blocks[0].Size != 32<<20 {
		t.Errorf("the memory manager has given %+v", blocks)
	}
	return cpu.Entries[uid]["main"], cpu.DefaultCPUSet
}
