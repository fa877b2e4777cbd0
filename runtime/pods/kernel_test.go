package pods

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// groups is what a kernel tells: the cgroup of each pid.
type groups map[int]string

func (g groups) Group(pid int, id string) (string, error) {
	if group := g[pid]; strings.Contains(group, id) {
		return group, nil
	}
	return "", errors.New("no such process")
}

// kernelTold is what groups tell of resources.
var kernelTold = PartOf(abi.Resources+abi.CPUPeriod) | PartOf(abi.Resources+abi.CPUQuota) | PartOf(abi.Resources+abi.CpusetCpus)

func (g groups) Resources(string) (*runtimeapi.LinuxContainerResources, Parts, error) {
	return &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuQuota: 20000, CpusetCpus: "0"}, kernelTold, nil
}

// filled is a store that was filled at a point of a recording.
func filled(t *testing.T, kernel Kernel, recording, point string) *Store {
	t.Helper()
	entries := load(t, "../../testdata/cri/"+recording+".json")
	for i, e := range entries {
		if e.Point == point {
			s := NewStoreWith(kernel)
			if err := s.Sync(t.Context(), answersAt(t, entries[i+1:])); err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatalf("%s has no point %q", recording, point)
	return nil
}

// After a restart on cri-dockerd the kernel tells where a container is, by the
// pid, and what it is allowed; the rest stays unreported and is not zero.
func TestKernelTellsWhatDockerDoesNot(t *testing.T) {
	const parent, app = "/wasmproxy-test/kubepods/burstable/pod7b6f0f2e", "72eb0f6bbf3003ac3b0c792f5ca88201cb2e10c389c52dad6661a6eccb4e5c80"
	s := filled(t, groups{30219: parent + "/" + app}, "cri-dockerd-0.4.3", "pinned")
	c, _ := s.Container(app)
	res := c.Config.GetLinux().GetResources()
	if c.CgroupsPath != parent+"/"+app || res.GetCpuQuota() != 20000 || res.GetCpusetCpus() != "0" {
		t.Errorf("cgroup %q, resources %v", c.CgroupsPath, res)
	}
	if want := allOfContainer &^ kernelTold; c.Unreported != want {
		t.Errorf("unreported %b, want %b", c.Unreported, want)
	}
	pod, _ := s.Pod(c.PodID)
	if pod.CgroupParent != parent || pod.Unreported != allOfPod {
		t.Errorf("cgroup parent %q, unreported %b", pod.CgroupParent, pod.Unreported)
	}
	if all := s.Pods(); all[0].CgroupParent != parent {
		t.Errorf("listed with cgroup parent %q", all[0].CgroupParent)
	}
	// The others' pids are other processes by now.
	other, _ := s.Container("c50fa4a0de003a42e272a21a6209843776e24f6dc976dad1af23f2696b055057")
	if other.CgroupsPath != "" || other.Unreported != allOfContainer || other.Config.GetLinux().GetResources().GetCpuQuota() != 0 {
		t.Errorf("cgroup %q, unreported %b, %v", other.CgroupsPath, other.Unreported, other.Config)
	}
	// kubelet's next container tells the pod's config, but for what Docker has told, which a plugin may have set.
	told, kubelets := pod.Config, podConfig()
	kubelets.Labels, kubelets.Annotations = nil, nil
	made := &runtimeapi.CreateContainerResponse{ContainerId: "new"}
	s.Observe(nil, &runtimeapi.CreateContainerRequest{PodSandboxId: c.PodID, SandboxConfig: kubelets}, made)
	if pod, _ := s.Pod(c.PodID); pod.Unreported != 0 || pod.Config.GetLinux().GetCgroupParent() != podConfig().Linux.CgroupParent {
		t.Errorf("unreported %b, %v", pod.Unreported, pod.Config)
	} else if !maps.Equal(pod.Config.Annotations, told.Annotations) || !maps.Equal(pod.Config.Labels, told.Labels) {
		t.Errorf("annotations %v, labels %v, and they were %v and %v", pod.Config.Annotations, pod.Config.Labels, told.Annotations, told.Labels)
	}
}

// What CRI-O's spec says of the cgroup is verified by the process, unless the
// container has ended and its pid may be another's.
func TestKernelVerifiesTheReportedCgroup(t *testing.T) {
	const app = "0d4e42496f98c8a3dd070977a52b37f07ae279730adace7fdf32a7d61fc6d85c"
	const reported, real = "/wasmproxy-test/kubepods/burstable/pod7b6f0f2e/crio-" + app, "/node/kubepods/crio-" + app
	for point, want := range map[string]string{"created": real, "pinned": real, "stopped": reported} {
		c, _ := filled(t, groups{26434: real}, "cri-o-1.36.3", point).Container(app)
		if c.CgroupsPath != want {
			t.Errorf("%s: %q, want %q", point, c.CgroupsPath, want)
		}
	}
	c, _ := filled(t, nil, "cri-o-1.36.3", "created").Container(app)
	if c.CgroupsPath != reported {
		t.Errorf("%q, want %q", c.CgroupsPath, reported)
	}
}

// A container that was seen being created learns its cgroup from one status call.
func TestLocate(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.addContainer("c", "pod", appConfig())
	n.containers["c"].Info = info(map[string]any{"sandboxID": "pod", "pid": 7, "runtimeSpec": map[string]any{"linux": map[string]any{"cgroupsPath": "/kubepods/pod/crio-c"}}})
	s.Observe(nil, &runtimeapi.CreateContainerRequest{PodSandboxId: "pod", Config: appConfig()}, &runtimeapi.CreateContainerResponse{ContainerId: "c"})
	c, err := s.Locate(t.Context(), n, "c")
	kept, _ := s.Container("c")
	if err != nil || c.CgroupsPath != "/kubepods/pod/crio-c" || kept.CgroupsPath != c.CgroupsPath || kept.Unreported != 0 {
		t.Errorf("%v, %v, kept %v", err, c, kept)
	}
}

// A container that starts again while the backend is asked, as Docker lets one, has not ended.
func TestLocateKeepsWhatHasStarted(t *testing.T) {
	for _, again := range []bool{false, true} {
		s, n := NewStore(), smallNode()
		n.addContainer("c", "pod", appConfig())
		n.containers["c"].Status.State = runtimeapi.ContainerState_CONTAINER_EXITED
		s.Observe(nil, &runtimeapi.CreateContainerRequest{PodSandboxId: "pod", Config: appConfig()}, &runtimeapi.CreateContainerResponse{ContainerId: "c"})
		want := runtimeapi.ContainerState_CONTAINER_EXITED
		if again {
			want = runtimeapi.ContainerState_CONTAINER_RUNNING
			n.asked = func(string, string) error {
				s.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: "c"}, &runtimeapi.StartContainerResponse{})
				return nil
			}
		}
		if c, err := s.Locate(t.Context(), n, "c"); err != nil || c.State != want {
			t.Errorf("started again %v: it is %v, %v", again, c.State, err)
		}
	}
}

// deadPod is a sandbox of which cri-dockerd has a checkpoint only.
func deadPod(n *node) {
	n.addPod("dead", podConfig())
	n.state = map[string]runtimeapi.PodSandboxState{"dead": runtimeapi.PodSandboxState_SANDBOX_NOTREADY}
	n.asked = func(method, id string) error {
		if method == "PodSandboxStatus" && id == "dead" {
			return status.Error(codes.Unknown, "Error response from daemon: No such container: dead")
		}
		return nil
	}
}

// A sandbox that the backend lists and cannot tell of is known by the list, and
// does not fail the sync.
func TestDeadSandboxDoesNotFailTheSync(t *testing.T) {
	s, n := NewStore(), smallNode()
	deadPod(n)
	for range 2 {
		if err := s.Sync(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	p, ok := s.Pod("dead")
	if !ok || p.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY || p.Config.GetMetadata().GetName() != "store" || p.Unreported != allOfPod|unread {
		t.Errorf("%v, %v", ok, p)
	}
	// One that is ready and cannot be read is a failure of the backend.
	n.state = nil
	if err := NewStore().Sync(t.Context(), n); status.Code(errors.Unwrap(errors.Unwrap(err))) != codes.Unknown {
		t.Errorf("error %v", err)
	}
}

// What the backend neither lists nor tells of is gone, whatever code it answers.
func TestGone(t *testing.T) {
	for _, code := range []codes.Code{codes.Unknown, codes.Internal, codes.Unavailable} {
		s, n := NewStore(), newNode()
		n.asked = func(method, _ string) error {
			if strings.HasSuffix(method, "Status") {
				return status.Error(code, "No such container: x")
			}
			return nil
		}
		_, podErr := s.ReadPod(t.Context(), n, "x")
		_, containerErr := s.ReadContainer(t.Context(), n, "x")
		want := code != codes.Unavailable
		if errors.Is(podErr, errGone) != want || errors.Is(containerErr, errGone) != want {
			t.Errorf("%v: %v, %v", code, podErr, containerErr)
		}
	}
}
