package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// kernelGroup is a container's cgroup of this machine's own, with a process in it.
type kernelGroup struct {
	fs     *cgroup.FS
	parent string // the pod's
	dir    string // of the container, in the cpu controller
	pid    int
}

const containerID = "5e1fd0c3a9b7"

// newKernelGroup makes the cgroup of container [containerID]; its last element is prefix
// and the id. It needs root and the cpu controller of cgroup v1, or v2 with it delegated.
func newKernelGroup(t *testing.T, prefix string) kernelGroup {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("root is needed to make a cgroup")
		}
		t.Skip("root is needed to make a cgroup")
	}
	fs, err := cgroup.Open("/sys/fs/cgroup", "auto")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	root := "/sys/fs/cgroup"
	if fs.Version() == 1 {
		root += "/cpu"
	}
	k := kernelGroup{fs: fs, parent: fmt.Sprintf("/wasmproxy-%d-%s", rand.Uint64(), strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")))}
	k.dir = filepath.Join(root, k.parent, prefix+containerID)
	for _, dir := range []string{filepath.Dir(k.dir), k.dir} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		if fs.Version() == 2 && dir != k.dir {
			k.write(t, "../cgroup.subtree_control", "+cpu")
		}
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleep.Process.Kill(); sleep.Wait() })
	k.pid = sleep.Process.Pid
	k.write(t, "cgroup.procs", strconv.Itoa(k.pid))
	return k
}

func (k kernelGroup) write(t *testing.T, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, file), []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// quota does what a runtime does in an update.
func (k kernelGroup) quota(us int) error {
	if k.fs.Version() == 1 {
		return os.WriteFile(filepath.Join(k.dir, "cpu.cfs_quota_us"), []byte(strconv.Itoa(us)), 0)
	}
	return os.WriteFile(filepath.Join(k.dir, "cpu.max"), fmt.Appendf(nil, "%d 100000", us), 0)
}

func (k kernelGroup) burst(t *testing.T) string {
	t.Helper()
	return content(t, k.dir, map[int]string{1: "cpu.cfs_burst_us", 2: "cpu.max.burst"}[k.fs.Version()])
}

// shares does what a runtime does in an update of anything.
func (k kernelGroup) shares() error {
	return os.WriteFile(filepath.Join(k.dir, k.shareFile()), []byte("700"), 0)
}

// share writes CPU shares, or a number for them on v2, and returns what the kernel holds then.
func (k kernelGroup) share(t *testing.T, shares int64) string {
	t.Helper()
	k.write(t, k.shareFile(), strconv.FormatInt(shares, 10))
	return content(t, k.dir, k.shareFile())
}

func (k kernelGroup) shareFile() string {
	return map[int]string{1: "cpu.shares", 2: "cpu.weight"}[k.fs.Version()]
}

// tellContainer makes the backend tell of a running container with this verbose info.
func (b *runtimeBackend) tellContainer(id string, info map[string]any) {
	text, err := json.Marshal(info)
	if err != nil {
		panic(err)
	}
	if b.containers == nil {
		b.containers = map[string]*runtimeapi.ContainerStatusResponse{}
	}
	b.containers[id] = &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{Id: id, Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		Info:   map[string]string{"info": string(text)},
	}
}

// create runs pod1 with this cgroup parent and creates [containerID] in it.
func (n *node) create(parent string) {
	n.t.Helper()
	config := podConfig()
	config.Linux.CgroupParent = parent
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	req := createRequest()
	req.SandboxConfig = config
	_, err = n.call(n.t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: containerID})
	n.must(err)
}

func (n *node) start() error {
	_, err := n.call(n.t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: containerID}, &runtimeapi.StartContainerResponse{})
	n.must(n.queue.Drain(n.t.Context()))
	return err
}

// resize has a runtime set a quota, and writes what the kernel answered to its error.
func (n *node) resize(k kernelGroup, us int) (kernelSays error) {
	n.t.Helper()
	n.updating = func() { kernelSays = errors.Join(k.quota(us), k.shares()) }
	_, err := n.call(n.t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: containerID, Linux: &runtimeapi.LinuxContainerResources{CpuQuota: int64(us)},
	}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	return kernelSays
}

// A runtime may give a container's cgroup a name of its own: what was seen being
// created is written, read and held there, after one question to the runtime.
func TestCgroupOfACreatedContainerByAnotherName(t *testing.T) {
	k := newKernelGroup(t, "other-")
	var read string
	n := newNode(t, []plugin.Member{
		on(abi.PreCreateContainer, write(abi.Container, "cpu.max.burst", "20000")),
		on(abi.PostStartContainer, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			read, _ = plugin.ReadFile(ctx, ev, abi.Container, "cpu.max.burst")
			return nil
		}),
	}, withCgroups(k.fs))
	n.backend.tellContainer(containerID, map[string]any{
		"sandboxID": "pod1", "pid": k.pid, "runtimeSpec": map[string]any{"linux": map[string]any{"cgroupsPath": k.parent + "/other-" + containerID}},
	})
	if err := k.quota(50000); err != nil {
		t.Fatal(err)
	}
	n.create(k.parent)
	n.must(n.start())
	if got := k.burst(t); got != "20000" || read != "20000" {
		t.Errorf("the burst is %s, the plugin read %q\n%s", got, read, n.log)
	}
	if err := n.resize(k, 10000); err != nil {
		t.Errorf("the kernel refused an update below the burst: %v", err)
	}
	if got := k.burst(t); got != "10000" {
		t.Errorf("the burst is %s after an update to 10000", got)
	}
	if n.backend.asked.Load() != 1 {
		t.Errorf("the runtime was asked %d times", n.backend.asked.Load())
	}
}

// containerd's and CRI-O's are found by their names, without a question to the runtime.
func TestCgroupOfACreatedContainer(t *testing.T) {
	for _, prefix := range []string{"", "crio-"} {
		t.Run(prefix+"ID", func(t *testing.T) {
			k := newKernelGroup(t, prefix)
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, write(abi.Container, "cpu.max.burst", "20000"))}, withCgroups(k.fs))
			n.create(k.parent)
			n.must(n.start())
			if err := n.resize(k, 50000); err != nil {
				t.Error(err)
			}
			if got := k.burst(t); got != "20000" || n.backend.asked.Load() != 0 {
				t.Errorf("the burst is %s, the runtime was asked %d times", got, n.backend.asked.Load())
			}
		})
	}
}

// After a restart of the proxy cri-dockerd tells the pid alone: what the proxy wrote
// before is held back during updates, and plugins see what the cgroup's files tell.
func TestUpdatesOnDockerAfterARestart(t *testing.T) {
	for _, hooked := range []bool{true, false} {
		t.Run(fmt.Sprint(hooked), func(t *testing.T) {
			k := newKernelGroup(t, "")
			if err := k.quota(30000); err != nil {
				t.Fatal(err)
			}
			for file, value := range map[string]string{"cpu.max.burst": "20000", "cpu.idle": "1"} {
				if err := k.fs.Write(t.Context(), k.parent+"/"+containerID, file, value); err != nil {
					t.Fatal(err)
				}
			}
			hook, saw := abi.PreUpdateContainerResources, map[string]string{}
			if !hooked {
				hook = abi.PreExec
			}
			n := newNode(t, []plugin.Member{on(hook, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
				parent, _ := ev.Text(abi.Pod, abi.PodCgroupParent)
				period, periodErr := ev.Int64(abi.Container, abi.Resources+abi.CPUPeriod)
				_, shares := ev.Int64(abi.Container, abi.Resources+abi.CPUShares) // an idle group has not its own
				_, env := ev.Entries(abi.Container, abi.ContainerEnv)
				_, home := ev.Lookup(abi.Container, abi.ContainerEnv, "HOME")
				_, args := ev.List(t.Context(), abi.Container, abi.ContainerArgs)
				_, overhead := ev.Int64(abi.Pod, abi.Overhead+abi.MemoryLimit)
				_, logs := ev.Text(abi.Pod, abi.PodLogDirectory)
				_, user := ev.Int64(abi.Container, abi.ContainerRunAsUser)
				name, _ := ev.Text(abi.Container, abi.ContainerName)
				burst, _ := plugin.ReadFile(ctx, ev, abi.Container, "cpu.max.burst")
				_, podFile := plugin.ReadFile(ctx, ev, abi.Pod, "cpu.idle")
				saw["got"] = fmt.Sprintln(parent, period, periodErr, shares, env, home, args, overhead, logs, user, name, burst, podFile)
				return nil
			})}, withCgroups(k.fs), func(o *intercept.Options) { o.Store = pods.NewStoreWith(enforce.KernelOf(k.fs)) })
			n.backend.tellContainer(containerID, map[string]any{"sandboxID": "pod1", "pid": k.pid})
			n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{
				"pod1": {Status: &runtimeapi.PodSandboxStatus{Id: "pod1", Metadata: podConfig().Metadata}},
			}
			if err := n.resize(k, 10000); err != nil {
				t.Errorf("the kernel refused an update: %v\n%s", err, n.log)
			}
			idle := content(t, k.dir, "cpu.idle")
			if got := k.burst(t); got != "10000" || idle != "1" {
				t.Errorf("the burst is %s, idle %s", got, idle)
			}
			u := abi.Unsupported
			if want := fmt.Sprintln(k.parent, 100000, abi.OK, u, u, u, u, u, u, u, "app", "20000", abi.OK); hooked && saw["got"] != want {
				t.Errorf("the plugin saw\n%swant\n%s", saw["got"], want)
			}
		})
	}
}

// Docker writes the shares only if an update names them, and the kernel forgets them while
// a group is idle: an update with which a plugin ends idle brings them back.
func TestSharesComeBackWhenIdleEndsOnDocker(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprint(own), func(t *testing.T) {
			k := newKernelGroup(t, "")
			idle := func(n *node, value string) *node {
				if own {
					return n.with(withCgroups(k.fs), on(abi.PreUpdateContainerResources, write(abi.Container, "cpu.idle", value)))
				}
				return n.with(withCgroups(k.fs), on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
					o, errno := ev.Find(abi.ByContainerID, containerID, nil)
					if errno != abi.OK {
						return errno
					}
					return errors.Join(adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000), adj.WriteFile(o, "cpu.idle", value))
				}))
			}
			n := newNode(t, nil, withCgroups(k.fs))
			n.create(k.parent) // with 512 shares
			n.must(n.start())
			given := k.share(t, 512)
			for _, value := range []string{"1", "0"} {
				idle(n, value).updateAsDocker(k, own)
				if got := content(t, k.dir, "cpu.idle"); got != value {
					t.Errorf("idle is %s, want %s", got, value)
				}
			}
			if got := content(t, k.dir, k.shareFile()); got != given {
				t.Errorf("the share is %s after idle, was %s", got, given)
			}
		})
	}
}

// updateAsDocker has the container updated by a call of its own, or by one of another
// pod. The runtime writes the shares if the update names them.
func (n *node) updateAsDocker(k kernelGroup, own bool) {
	n.t.Helper()
	update := func(r *runtimeapi.UpdateContainerResourcesRequest) {
		if shares := r.GetLinux().GetCpuShares(); shares != 0 {
			k.share(n.t, shares)
		}
	}
	n.backend.hear = func() { update(n.backend.updates[len(n.backend.updates)-1]) }
	if !own {
		n.must(n.second())
		return
	}
	n.updating = func() {
		sent := &runtimeapi.UpdateContainerResourcesRequest{}
		n.must(n.sent.Decode(sent))
		update(sent)
	}
	_, err := n.call(n.t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: containerID, Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: "0"},
	}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
}

// A container that nobody knows the cgroup of cannot be held, and the log says so.
func TestUpdateOfAContainerThatIsNotFound(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(ctx context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		for _, o := range []abi.Object{abi.Pod, abi.Container} {
			if _, errno := plugin.ReadFile(ctx, ev, o, "cpu.idle"); errno != abi.Unsupported {
				t.Errorf("%v: %v", o, errno)
			}
		}
		return nil
	})}, withCgroups(scratch(t, "v2")))
	n.backend.tellContainer("c1", map[string]any{"sandboxID": "pod1"})
	n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{
		"pod1": {Status: &runtimeapi.PodSandboxStatus{Id: "pod1", Metadata: podConfig().Metadata}},
	}
	_, err := n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1"}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	if !strings.Contains(n.log.String(), "failed to suspend cgroup overrides") {
		t.Errorf("log:\n%s", n.log)
	}
}

// With the systemd driver files are written and read in the slice and the scope, before and
// after a restart of the proxy, whichever form the runtime's report has.
func TestFilesWithTheSystemdDriver(t *testing.T) {
	const slice = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu1.slice"
	for _, tt := range []struct{ parent, told, scope string }{
		{slice, "", "cri-containerd-"},
		{"kubepods-burstable-podu1.slice", "", "docker-"},
		{slice, "kubepods-burstable-podu1.slice:crio:" + containerID, "crio-"},
		{slice, slice + "/crio-" + containerID + ".scope", "crio-"},
	} {
		root := t.TempDir()
		pod, container := filepath.Join(root, slice), filepath.Join(root, slice, tt.scope+containerID+".scope")
		for dir, file := range map[string]string{pod: "memory.high", container: "cpu.idle"} {
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, file), []byte("0\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		fs, err := cgroup.Open(root, "v2")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { fs.Close() })
		read := ""
		n := newNode(t, []plugin.Member{
			on(abi.PreRunPodSandbox, write(abi.Pod, "memory.high", "8192000")),
			on(abi.PreStartContainer, func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
				read, _ = plugin.ReadFile(ctx, ev, abi.Container, "cpu.idle")
				return adj.WriteFile(abi.Container, "cpu.idle", "1")
			}),
		}, withCgroups(fs))
		want := "0"
		if tt.told == "" {
			n.create(tt.parent)
			want = "8192000"
		} else {
			config := podConfig()
			config.Linux.CgroupParent = tt.parent
			n.backend.tellPod("pod1", config)
			n.backend.tellContainer(containerID, map[string]any{"sandboxID": "pod1", "runtimeSpec": map[string]any{"linux": map[string]any{"cgroupsPath": tt.told}}})
		}
		n.must(n.start())
		for file, want := range map[string]string{filepath.Join(pod, "memory.high"): want, filepath.Join(container, "cpu.idle"): "1"} {
			if b, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(b)) != want {
				t.Errorf("%v: %s holds %q, %v, want %s\n%s", tt, file, b, err, want, n.log)
			}
		}
		if read != "0" {
			t.Errorf("%v: the plugin read %q", tt, read)
		}
	}
}

// kubelet stops and removes what is gone again and again: a runtime's odd answer
// about it, as cri-dockerd's, is not worth a line each time.
func TestStopOfWhatIsGoneIsQuiet(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreStopPodSandbox, nothing), on(abi.PreRemovePodSandbox, nothing), on(abi.PreRemoveContainer, nothing)})
	n.backend.unknown = status.Error(codes.Unknown, "Error response from daemon: No such container: gone")
	for range 2 {
		_, err := n.call(t.Context(), "StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "gone"}, &runtimeapi.StopPodSandboxResponse{})
		n.must(err)
		_, err = n.call(t.Context(), "RemovePodSandbox", &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "gone"}, &runtimeapi.RemovePodSandboxResponse{})
		n.must(err)
		_, err = n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "gone"}, &runtimeapi.RemoveContainerResponse{})
		n.must(err)
	}
	if n.log.Len() > 0 {
		t.Errorf("log:\n%s", n.log)
	}
}

// The files of a pod that a plugin moves are those of the cgroup that kubelet made:
// the other does not exist yet.
func TestFilesOfAMovedPodAreKubelets(t *testing.T) {
	fs, dir, _ := scratchGroup(t)
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(adj.SetText(abi.Pod, abi.PodCgroupParent, "/kubepods/burstable/podu1/batch"), adj.WriteFile(abi.Pod, "memory.high", "8192000"))
	})}, withCgroups(fs))
	n.runPod()
	if got := content(t, dir, "memory.high"); got != "8192000" {
		t.Errorf("memory.high is %s\n%s", got, n.log)
	}
}
