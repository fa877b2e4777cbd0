package tap

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// podLabel is kubelet's label of the name of a pod.
const podLabel = "io.kubernetes.pod.name"

// Names knows the names of pods by the ids of their sandboxes and containers. Several taps can
// share it.
type Names struct {
	mu  sync.Mutex
	ids map[string]string
}

// NewNames returns one that knows no id.
func NewNames() *Names { return &Names{ids: map[string]string{}} }

// requests are those whose pods are known.
var requests = map[string]func() proto.Message{
	"RunPodSandbox":             func() proto.Message { return &cri.RunPodSandboxRequest{} },
	"CreateContainer":           func() proto.Message { return &cri.CreateContainerRequest{} },
	"StartContainer":            func() proto.Message { return &cri.StartContainerRequest{} },
	"UpdateContainerResources":  func() proto.Message { return &cri.UpdateContainerResourcesRequest{} },
	"UpdatePodSandboxResources": func() proto.Message { return &cri.UpdatePodSandboxResourcesRequest{} },
	"StopContainer":             func() proto.Message { return &cri.StopContainerRequest{} },
	"RemoveContainer":           func() proto.Message { return &cri.RemoveContainerRequest{} },
	"StopPodSandbox":            func() proto.Message { return &cri.StopPodSandboxRequest{} },
	"RemovePodSandbox":          func() proto.Message { return &cri.RemovePodSandboxRequest{} },
}

// ofRequest returns the name of the pod that a request is about; "" if it is not known.
func (n *Names) ofRequest(method string, request frame) string {
	make := requests[method]
	if make == nil {
		return ""
	}
	message := make()
	if err := proto.Unmarshal(request, message); err != nil {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch r := message.(type) {
	case *cri.RunPodSandboxRequest:
		return r.GetConfig().GetMetadata().GetName()
	case interface{ GetPodSandboxId() string }:
		return n.ids[r.GetPodSandboxId()]
	case interface{ GetContainerId() string }:
		return n.ids[r.GetContainerId()]
	}
	return ""
}

// learn reads the ids that an answer has.
func (n *Names) learn(k key, answer frame) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch k.method {
	case "RunPodSandbox":
		var a cri.RunPodSandboxResponse
		if proto.Unmarshal(answer, &a) == nil {
			n.ids[a.PodSandboxId] = k.pod
		}
	case "CreateContainer":
		var a cri.CreateContainerResponse
		if proto.Unmarshal(answer, &a) == nil {
			n.ids[a.ContainerId] = k.pod
		}
	case "ListPodSandbox":
		var a cri.ListPodSandboxResponse
		if proto.Unmarshal(answer, &a) == nil {
			for _, s := range a.Items {
				n.ids[s.Id] = s.Labels[podLabel]
			}
		}
	case "ListContainers":
		var a cri.ListContainersResponse
		if proto.Unmarshal(answer, &a) == nil {
			for _, c := range a.Containers {
				n.ids[c.Id] = c.Labels[podLabel]
			}
		}
	}
}

// frame is a message as its bytes.
type frame []byte

// raw is a codec that leaves messages as they are.
type raw struct{}

// Name is that of the codec whose place it takes.
func (raw) Name() string { return "proto" }

// Marshal returns the bytes of a frame.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(frame)
	if !ok {
		return nil, fmt.Errorf("sending a %T through the relay: it is not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f)}, nil
}

// Unmarshal copies bytes to a frame.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("receiving a %T from the relay: it is not a frame", v)
	}
	*f = data.Materialize()
	return nil
}
