package intercept_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const secret = "hunter2"

// secretCreate has an environment that nobody is to see.
func secretCreate() *runtimeapi.CreateContainerRequest {
	r := createRequest()
	r.Config.Envs = []*runtimeapi.KeyValue{{Key: "TOKEN", Value: []byte(secret)}}
	return r
}

// A raw request has neither env values nor credentials for who may not see them.
func TestRaw(t *testing.T) {
	for _, test := range []struct {
		method      string
		hook        abi.Hook
		req, answer proto.Message
		needs       abi.Capability
	}{
		{"CreateContainer", abi.PreCreateContainer, secretCreate(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"}, abi.Env},
		{"RestorePod", abi.PreRestorePod, &runtimeapi.RestorePodRequest{ContainerConfigs: []*runtimeapi.ContainerConfig{secretCreate().Config}}, &runtimeapi.RestorePodResponse{}, abi.Env},
		{"PullImage", abi.PrePullImage, &runtimeapi.PullImageRequest{Auth: &runtimeapi.AuthConfig{
			Username: secret, Password: secret, Auth: secret, ServerAddress: secret, IdentityToken: secret, RegistryToken: secret,
		}}, &runtimeapi.PullImageResponse{}, abi.Credentials},
	} {
		var with, without []byte
		n := newNode(t, []plugin.Member{on(test.hook, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			with, _ = ev.Raw(abi.CapabilitySetOf(abi.ReadRaw, test.needs))
			without, _ = ev.Raw(abi.AllCapabilities &^ abi.CapabilitySetOf(test.needs))
			return nil
		})})
		_, err := n.call(t.Context(), test.method, test.req, test.answer)
		n.must(err)
		if !bytes.Contains(with, []byte(secret)) || len(without) == 0 && test.needs == abi.Env || bytes.Contains(without, []byte(secret)) {
			t.Errorf("%s: with the capability %q, without it %q", test.method, with, without)
		}
		sent := test.req.ProtoReflect().New().Interface()
		n.must(n.sent.Decode(sent))
		if !proto.Equal(sent, test.req) {
			t.Errorf("%s: the runtime got %v", test.method, sent)
		}
	}
}

// The same request is the same bytes each time, whatever order its maps are walked in.
func TestL8RawIsDeterministic(t *testing.T) {
	req := secretCreate()
	req.Config.Labels, req.Config.Annotations = map[string]string{}, map[string]string{}
	for i := range 20 {
		req.Config.Labels[fmt.Sprint("label", i)], req.Config.Annotations[fmt.Sprint("annotation", i)] = "x", "y"
	}
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		for _, has := range []abi.CapabilitySet{abi.AllCapabilities, abi.CapabilitySetOf(abi.ReadRaw)} {
			first, _ := ev.Raw(has)
			for range 10 {
				if raw, errno := ev.Raw(has); errno != abi.OK || !bytes.Equal(raw, first) {
					t.Errorf("got other bytes, %v", errno)
				}
			}
		}
		return nil
	})})
	_, err := n.call(t.Context(), "CreateContainer", req, &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
}

// The name of a hidden variable stays.
func TestRawKeepsNames(t *testing.T) {
	got := &runtimeapi.CreateContainerRequest{}
	n := newNode(t, []plugin.Member{on(abi.PreCreateContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		raw, _ := ev.Raw(abi.CapabilitySetOf(abi.ReadRaw))
		return proto.Unmarshal(raw, got)
	})})
	_, err := n.call(t.Context(), "CreateContainer", secretCreate(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	want := secretCreate()
	want.Config.Envs[0].Value = nil
	if !proto.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// A raw request has what earlier plugins changed, as the fields have it.
func TestRawHasEarlierChanges(t *testing.T) {
	var raw []byte
	change := on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return cmp.Or(adj.SetText(abi.Pod, abi.PodRuntimeHandler, "kata"), adj.SetEntry(abi.Pod, abi.PodAnnotations, "a", "b"))
	})
	read := on(abi.PreRunPodSandbox, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		raw, _ = ev.Raw(abi.AllCapabilities)
		return nil
	})
	n := newNode(t, []plugin.Member{change, read})
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{}}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
	n.must(err)
	var got runtimeapi.RunPodSandboxRequest
	n.must(proto.Unmarshal(raw, &got))
	if got.RuntimeHandler != "kata" || got.Config.Annotations["a"] != "b" {
		t.Errorf("the second plugin reads %v", &got)
	}
}
