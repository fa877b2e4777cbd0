package intercept_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestQOSClassOnTheKernel reads the kernel's own files of a pod's QoS class, of the event's pod
// and of a handle, also if a plugin moves the pod. No plugin can write them.
func TestQOSClassOnTheKernel(t *testing.T) {
	k := newKernelGroup(t, "")
	fs, root := k.fs, k.parent+"-root" // kubelet's --cgroup-root
	parent := root + "/kubepods/burstable/podu1"
	makeGroups(t, fs, root, root+"/kubepods", root+"/kubepods/burstable", parent)
	for group, limit := range map[string]string{root + "/kubepods": "300", root + "/kubepods/burstable": "200", parent: "100"} {
		if err := fs.Write(t.Context(), group, "pids.max", limit); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	n := newNode(t, []plugin.Member{
		on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetText(abi.Pod, abi.PodCgroupParent, parent+"/batch")
		}),
		on(abi.PreStartContainer, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			handle, _ := ev.Find(abi.ByPodID, "pod1", nil)
			for _, o := range []abi.Object{abi.Pod, abi.QOSClass + abi.Pod, abi.QOSClass + handle} {
				ev.ReadFiles(ctx, o, []string{"pids.max", "pids.current", "cgroup.procs"}, func(text string, errno abi.Errno) {
					got = append(got, text, fmt.Sprint(int(errno)))
				})
			}
			err := adj.WriteFile(abi.QOSClass+abi.Pod, "pids.max", "7")
			if plugin.ErrnoOf(err) != abi.ReadOnly || !strings.Contains(err.Error(), "QoS class cgroup file pids.max: read-only here: the cgroup of a QoS class belongs to kubelet, and plugins can only read it") {
				t.Errorf("a write: %v", err)
			}
			return nil
		}),
	}, withCgroups(fs))
	n.create(parent)
	n.must(n.start())
	want := "100 0 0 0  -4"
	for range 2 {
		want += " 200 0 0 0  -4"
	}
	want = strings.ReplaceAll(want, "-4", fmt.Sprint(int(abi.Denied)))
	if strings.Join(got, " ") != want {
		t.Errorf("read %q, want %q", strings.Join(got, " "), want)
	}
	if v, err := fs.Read(root+"/kubepods/burstable", "pids.max"); err != nil || v != "200" {
		t.Errorf("the class's pids.max is %q, %v", v, err)
	}
}

// makeGroups makes groups of this machine's kernel, each with the pids controller.
func makeGroups(t *testing.T, fs *cgroup.FS, groups ...string) {
	t.Helper()
	mount := "/sys/fs/cgroup"
	if fs.Version() == 1 {
		mount += "/pids"
	}
	for _, group := range groups {
		dir := filepath.Join(mount, group)
		if fs.Version() == 2 {
			if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "cgroup.subtree_control"), []byte("+pids"), 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestQOSClassThatIsNone has pods that kubelet did not put into a QoS class, and objects that are
// no pods.
func TestQOSClassThatIsNone(t *testing.T) {
	fs, dir, _ := scratchGroup(t)
	for _, class := range []string{filepath.Dir(dir), filepath.Join(dir, "../..")} {
		if err := os.WriteFile(filepath.Join(class, "memory.max"), []byte("max\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for parent, want := range map[string]abi.Errno{
		"/kubepods/burstable/podu1": abi.OK, "/kubepods/podu1": abi.OK, "/x/kubepods/podu1": abi.NotFound, // there is no such group
		"": abi.NotFound, "/podu1": abi.NotFound, "/kubepods/burstable": abi.NotFound, "/kubepods/burstable/podu1/x": abi.NotFound, "podu1.slice": abi.NotFound,
	} {
		var got abi.Errno
		n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			_, got = plugin.ReadFile(ctx, ev, abi.QOSClass+abi.Pod, "memory.max")
			for _, o := range []abi.Object{abi.Event, abi.Container, abi.Node} {
				if _, errno := plugin.ReadFile(ctx, ev, abi.QOSClass+o, "memory.max"); errno != abi.Invalid {
					t.Errorf("of the %v: %v", o, errno)
				}
			}
			for _, o := range []abi.Object{abi.FirstHandle, abi.QOSClass, 1<<31 - 1 - abi.QOSClass} {
				if _, errno := plugin.ReadFile(ctx, ev, abi.QOSClass+o, "memory.max"); errno != abi.NotFound {
					t.Errorf("of object %d: %v", o, errno)
				}
			}
			return nil
		})}, withCgroups(fs))
		config := podConfig()
		config.Linux.CgroupParent = parent
		_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
		n.must(err)
		if got != want {
			t.Errorf("parent %q: %v, want %v", parent, got, want)
		}
	}
}

// TestQOSClassThatNobodyReports: where neither the runtime nor the kernel tells the pod's cgroup,
// its QoS class is UNSUPPORTED as the cgroup is.
func TestQOSClassThatNobodyReports(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	e := map[string]abi.Errno{}
	n := newNode(t, []plugin.Member{on(abi.PreStartContainer, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		_, e["pod"] = plugin.ReadFile(ctx, ev, abi.Pod, "memory.max")
		_, e["class"] = plugin.ReadFile(ctx, ev, abi.QOSClass+abi.Pod, "memory.max")
		return nil
	})}, withCgroups(fs))
	n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{
		"pod1": {Status: &runtimeapi.PodSandboxStatus{Id: "pod1", Metadata: podConfig().Metadata}},
	}
	n.backend.tellContainer(containerID, map[string]any{"sandboxID": "pod1"})
	n.must(n.start())
	if e["pod"] != abi.Unsupported || e["class"] != abi.Unsupported {
		t.Errorf("%v", e)
	}
}
