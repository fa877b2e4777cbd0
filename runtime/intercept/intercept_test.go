package intercept_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func nothing(context.Context, plugin.Event, *plugin.Adjustment) error { return nil }

// unknownField is field 900 with a varint, as a newer kubelet may send.
var unknownField = protowire.AppendVarint(protowire.AppendTag(nil, 900, protowire.VarintType), 7)

func TestUnchangedRequestIsTheOriginalFrame(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, nothing)})
	n.runPod()
	frame, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	if n.sent != frame {
		t.Error("a request that no plugin changed was encoded anew")
	}
}

func TestChangedRequestKeepsTheRest(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(
			adj.SetInt64(abi.Container, abi.Resources+abi.CPUQuota, 25_000),
			adj.SetEntry(abi.Container, abi.ContainerEnv, "A", "third"),
			adj.SetEntry(abi.Container, abi.ContainerEnv, "NEW", "\xff"),
			adj.DeleteEntry(abi.Container, abi.ContainerAnnotations, "a"),
			adj.SetEntry(abi.Container, abi.ContainerAnnotations, "b", "2"))
	})})
	n.runPod()
	req := createRequest()
	for _, m := range []proto.Message{req, req.Config, req.Config.Linux, req.Config.Linux.Resources, req.SandboxConfig} {
		m.ProtoReflect().SetUnknown(unknownField)
	}
	want := proto.CloneOf(req)
	want.Config.Linux.Resources.CpuQuota = 25_000
	want.Config.Envs = []*runtimeapi.KeyValue{
		{Key: "Z", Value: []byte("1")}, {Key: "BIN", Value: []byte{0xff, 0xfe}},
		{Key: "A", Value: []byte("third")}, {Key: "NEW", Value: []byte{0xff}},
	}
	want.Config.Annotations = map[string]string{"b": "2"}
	_, err := n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	if diff := cmp.Diff(want, decodeSent[runtimeapi.CreateContainerRequest](n), protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// An update stays the partial update that kubelet sent, with what plugins set.
func TestUpdateStaysPartial(t *testing.T) {
	var saw int64
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		saw, _ = ev.Int64(abi.Container, abi.Resources+abi.MemoryLimit)
		return adj.SetInt64(abi.Container, abi.Resources+abi.CPUShares, 100)
	})})
	n.runPod()
	_, err := n.call(t.Context(), "UpdateContainerResources",
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: "1"}},
		&runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	want := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1", Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: "1", CpuShares: 100}}
	if diff := cmp.Diff(want, decodeSent[runtimeapi.UpdateContainerResourcesRequest](n), protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if saw != 1<<27 {
		t.Errorf("the plugin saw a memory limit of %d, not that of the container", saw)
	}
	c, _ := n.store.Container("c1")
	if r := c.Config.GetLinux().GetResources(); r.GetCpuShares() != 100 || r.GetCpusetCpus() != "1" || r.GetCpuQuota() != 50_000 {
		t.Errorf("the store has %v", r)
	}
}

// What a plugin changed of the pod reaches the containers: kubelet sends the
// pod's config again as it was.
func TestPodChangesAreLaidOverCreate(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return errors.Join(
			adj.SetText(abi.Pod, abi.PodCgroupParent, "/kubepods/burstable/podu1/batch"),
			adj.SetEntry(abi.Pod, abi.PodAnnotations, "added", "1"),
			adj.DeleteEntry(abi.Pod, abi.PodLabels, "app"))
	})})
	n.runPod()
	got := decodeSent[runtimeapi.CreateContainerRequest](n)
	want := createRequest()
	want.SandboxConfig.Linux.CgroupParent = "/kubepods/burstable/podu1/batch"
	want.SandboxConfig.Annotations["added"] = "1"
	want.SandboxConfig.Labels = nil
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		policy plugin.FailurePolicy
		call   function
		code   codes.Code
	}{
		{"deny", plugin.Ignore, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error { return adj.Reject(0, "full") }, codes.FailedPrecondition},
		{"deny with a code", plugin.Ignore, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.Reject(abi.RejectResourceExhausted, "full")
		}, codes.ResourceExhausted},
		{"fault", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broke") }, codes.Unavailable},
		{"fault that is ignored", plugin.Ignore, func(context.Context, plugin.Event, *plugin.Adjustment) error { return errors.New("broke") }, codes.OK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := on(abi.PreRunPodSandbox, tt.call)
			m.Policy = tt.policy
			n := newNode(t, []plugin.Member{m})
			_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
			if status.Code(err) != tt.code {
				t.Errorf("error %v", err)
			}
			if went := n.sent != nil; went != (tt.code == codes.OK) {
				t.Errorf("sent to the backend: %v", went)
			}
			if err != nil && (!strings.Contains(err.Error(), "10-test") || !strings.Contains(err.Error(), "PreRunPodSandbox")) {
				t.Errorf("error does not name plugin and hook: %v", err)
			}
		})
	}
}

// The backend's status goes to the caller as it is, and the store does not
// believe that the call succeeded.
func TestBackendErrorIsNotTouched(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PostStopContainer, nothing)})
	n.runPod()
	n.fails = status.Error(codes.Unknown, "RegistryUnavailable: no")
	_, err := n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	if !errors.Is(err, n.fails) {
		t.Errorf("error %v", err)
	}
	if _, ok := n.store.Container("c1"); !ok {
		t.Error("the record went although the removal failed")
	}
}

func TestCallerThatWentAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, func(ctx context.Context, _ plugin.Event, _ *plugin.Adjustment) error {
		cancel()
		return ctx.Err()
	})})
	_, err := n.call(ctx, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{}, nil)
	if status.Code(err) != codes.Canceled || n.sent != nil {
		t.Errorf("error %v", err)
	}
}

// What kubelet itself changes of a pod between its containers is kubelet's: with
// no plugin's change to lay over, its bytes go on as they came.
func TestNothingIsLaidOverWithoutAChange(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, nothing)})
	n.runPod()
	req := createRequest()
	delete(req.SandboxConfig.Annotations, "example.com/tier")
	frame, err := n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	if n.sent != frame {
		t.Error("the request was encoded anew")
	}
}

// After a restart of the proxy nobody knows what kubelet asked for when the pod
// was made: the labels and annotations that kubelet no longer sends are not put
// back, and only a cgroup parent below kubelet's is a plugin's.
func TestOverlayAfterARestart(t *testing.T) {
	const cgroupfs, slice = "/kubepods/burstable/podu1", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu1.slice"
	for _, tt := range []struct{ name, told, kubelets, want string }{
		{"no change", cgroupfs, cgroupfs, cgroupfs},
		{"moved by a plugin", cgroupfs + "/batch", cgroupfs, cgroupfs + "/batch"},
		{"another root of the hierarchy", "/docker/ab12/kubepods/burstable/podu1", cgroupfs, cgroupfs},
		{"a slice as CRI-O tells it", "kubepods-burstable-podu1.slice", slice, slice},
		{"a slice, moved by a plugin", "kubepods-burstable-podu1-batch.slice", slice, "kubepods-burstable-podu1-batch.slice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, nothing)})
			told := podConfig()
			told.Labels["team"], told.Annotations["team/owner"] = "red", "bob"
			told.Linux.CgroupParent = tt.told
			n.backend.tellPod("pod1", told)
			req, want := createRequest(), createRequest()
			req.SandboxConfig.Linux.CgroupParent, want.SandboxConfig.Linux.CgroupParent = tt.kubelets, tt.want
			frame, err := n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
			n.must(err)
			if diff := cmp.Diff(want, decodeSent[runtimeapi.CreateContainerRequest](n), protocmp.Transform()); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if touched := n.sent != frame; touched != (tt.want != tt.kubelets) {
				t.Errorf("the request was encoded anew: %v", touched)
			}
		})
	}
}

// crictl passes on the prefix that its user typed: the update waits in the queue
// of the container that the prefix stands for.
func TestUpdateByIDPrefixWaitsInTheContainersQueue(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreUpdateContainerResources, nothing)})
	n.runPod()
	ended, released := false, make(chan struct{})
	if !n.queue.Go("c1", func() { <-released; ended = true }) {
		t.Fatal("not queued")
	}
	time.AfterFunc(20*time.Millisecond, func() { close(released) })
	_, err := n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c"}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	select {
	case <-released:
	default:
		t.Fatal("the update did not wait for the earlier item of its container")
	}
	if !ended {
		t.Error("the update went on before the earlier item had ended")
	}
}

// A pod that the runtime told little of is known again by the config that kubelet sends
// with a container, and not by what a plugin makes of that one container.
func TestPodIsToldByKubeletsNextContainer(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetText(abi.Pod, abi.PodCgroupParent, "/kubepods/burstable/podu1/one")
	})})
	n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{
		"pod1": {Status: &runtimeapi.PodSandboxStatus{
			Id: "pod1", Metadata: podConfig().Metadata, Labels: podConfig().Labels, Annotations: podConfig().Annotations,
		}},
	}
	_, err := n.call(t.Context(), "CreateContainer", createRequest(), &runtimeapi.CreateContainerResponse{ContainerId: "c1"})
	n.must(err)
	if got := decodeSent[runtimeapi.CreateContainerRequest](n).SandboxConfig.Linux.CgroupParent; got != "/kubepods/burstable/podu1/one" {
		t.Errorf("the container's cgroup parent is %s", got)
	}
	if pod, _ := n.store.Pod("pod1"); pod.Unreported != 0 || !proto.Equal(pod.Config, podConfig()) {
		t.Errorf("unreported %b, %v", pod.Unreported, pod.Config)
	}
}
