package intercept_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestUndecodableRequest(t *testing.T) {
	m := on(abi.PreStartContainer, nothing)
	n := newNode(t, []plugin.Member{m})
	raw := &runtimeapi.VersionRequest{}
	raw.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff}))
	bad, err := cri.NewFrame(raw)
	if err != nil {
		t.Fatal(err)
	}
	n.must(n.callFrame(t.Context(), "StartContainer", bad, &runtimeapi.StartContainerResponse{}))
	if n.sent != bad {
		t.Error("a request that cannot be read did not go on as it came")
	}
	m.Policy = plugin.Fail
	n = newNode(t, []plugin.Member{m})
	if err := n.callFrame(t.Context(), "StartContainer", bad, nil); status.Code(err) != codes.Unavailable || n.sent != nil {
		t.Errorf("error %v", err)
	}
}

func TestUnknownContainer(t *testing.T) {
	asked := 0
	m := on(abi.PreStartContainer, func(context.Context, plugin.Event, *plugin.Adjustment) error { asked++; return nil })
	start := &runtimeapi.StartContainerRequest{ContainerId: "c9"}
	t.Run("the runtime does not know it either", func(t *testing.T) {
		m := m
		m.Policy = plugin.Fail // there is nothing to protect, and NotFound is what kubelet goes by
		n := newNode(t, []plugin.Member{m})
		n.fails = status.Error(codes.NotFound, "no container")
		if _, err := n.call(t.Context(), "StartContainer", start, nil); !errors.Is(err, n.fails) || asked != 0 {
			t.Errorf("error %v, %d hooks", err, asked)
		}
	})
	t.Run("the runtime is down", func(t *testing.T) {
		must := m
		must.Policy = plugin.Fail
		n := newNode(t, []plugin.Member{must})
		n.backend.down = true
		if _, err := n.call(t.Context(), "StartContainer", start, nil); status.Code(err) != codes.Unavailable || n.sent != nil {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the runtime knows it", func(t *testing.T) {
		n := newNode(t, []plugin.Member{m})
		n.backend.pods = map[string]*runtimeapi.PodSandboxStatusResponse{"p9": {Status: &runtimeapi.PodSandboxStatus{Id: "p9", Metadata: podConfig().Metadata}}}
		n.backend.containers = map[string]*runtimeapi.ContainerStatusResponse{"c9": {
			Status: &runtimeapi.ContainerStatus{Id: "c9", Metadata: &runtimeapi.ContainerMetadata{Name: "app"}},
			Info:   map[string]string{"info": `{"sandboxID":"p9"}`},
		}}
		_, err := n.call(t.Context(), "StartContainer", start, &runtimeapi.StartContainerResponse{})
		n.must(err)
		if asked != 1 {
			t.Errorf("%d hooks", asked)
		}
	})
}

// A second removal of a container, which runtimes answer as they did the first, has no hooks: nothing is
// left that plugins could be told of.
func TestRemovedTwice(t *testing.T) {
	var asked atomic.Int64
	n := newNode(t, []plugin.Member{on(abi.PostRemoveContainer, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		asked.Add(1)
		return nil
	})})
	n.runPod()
	for range 2 {
		_, err := n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
		n.must(err)
		n.must(n.queue.Drain(t.Context()))
	}
	if asked.Load() != 1 {
		t.Errorf("%d hooks ran for two removals of one container", asked.Load())
	}
}

// A call of which plugins cannot judge the request is refused where they hook it. Elsewhere it passes, and
// the store is not told what it does not know, but has to ask.
func TestUnseenRequest(t *testing.T) {
	for _, test := range []struct {
		name    string
		hook    abi.Hook
		cut     bool
		refused bool
	}{
		{"hooked before", abi.PreCreateContainer, false, true},
		{"hooked after", abi.PostCreateContainer, false, true},
		{"not hooked", abi.PreStartContainer, false, false},
		{"taken out", abi.PreCreateContainer, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			lost, cut := 0, intercept.NewCut()
			n := newNode(t, []plugin.Member{on(test.hook, nothing)}, func(o *intercept.Options) { o.Lost, o.Cut = func() { lost++ }, cut })
			if test.cut {
				cut.Begin()
			}
			frame, err := cri.NewFrame(createRequest())
			n.must(err)
			sent := false
			call := &cri.Call{Request: frame, Unseen: errors.New("it has more")}
			_, err = n.route(n.full("CreateContainer"))(t.Context(), call, func(context.Context, *cri.Frame) (*cri.Frame, error) {
				sent = true
				return cri.NewFrame(&runtimeapi.CreateContainerResponse{ContainerId: "c1"})
			})
			if refused := status.Code(err) == codes.InvalidArgument; refused != test.refused || sent == test.refused || (lost == 0) != test.refused {
				t.Errorf("error %v, sent %v, the store has to ask %d times", err, sent, lost)
			}
			if _, known := n.store.Container("c1"); known {
				t.Error("the store was told")
			}
		})
	}
}

// Where no hook is to be told, what the store lacks is not asked of the runtime:
// the call would wait for it.
func TestNothingIsReadWithoutAHook(t *testing.T) {
	n := newNode(t, []plugin.Member{on(abi.PostRemoveContainer, nothing)})
	n.runPod()
	n.backend.down = true
	_, err := n.call(t.Context(), "CreateContainer", &runtimeapi.CreateContainerRequest{PodSandboxId: "pod9"}, &runtimeapi.CreateContainerResponse{ContainerId: "c9"})
	n.must(err)
	n.log.Reset()
	for _, id := range []string{"c8", "c9"} { // one that is not known, one whose pod is not
		_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: id}, &runtimeapi.StartContainerResponse{})
		n.must(err)
	}
	_, err = n.call(t.Context(), "StopPodSandbox", &runtimeapi.StopPodSandboxRequest{PodSandboxId: "pod9"}, &runtimeapi.StopPodSandboxResponse{})
	n.must(err)
	if n.log.Len() > 0 {
		t.Errorf("the runtime was asked:\n%s", n.log)
	}
}

// Requests without the parts that hooks look into are no danger.
func TestEmptyRequests(t *testing.T) {
	var members []plugin.Member
	for _, h := range abi.Hooks {
		members = append(members, on(h.Hook, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			for _, f := range abi.Fields {
				_, _ = ev.Int64(f.Object, f.Field)
				_, _ = ev.Text(f.Object, f.Field)
				_, _ = ev.Lookup(f.Object, f.Field, "x")
				switch f.Type {
				case abi.Int64:
					_ = adj.SetInt64(f.Object, f.Field, 5000)
				case abi.String:
					_ = adj.SetText(f.Object, f.Field, "")
				case abi.Map:
					_ = adj.SetEntry(f.Object, f.Field, "k", "v")
				}
			}
			return nil
		}))
	}
	n := newNode(t, members)
	for _, m := range cri.Methods {
		name := m.Name[strings.LastIndexByte(m.Name, '/')+1:]
		if _, err := n.call(t.Context(), name, m.NewRequest(), m.NewResponse()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.must(n.queue.Drain(t.Context()))
}
