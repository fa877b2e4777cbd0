package intercept_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestPostHooks(t *testing.T) {
	release, asked := make(chan struct{}), make(chan string, 8)
	tell := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		id, _ := ev.Text(abi.Container, abi.ContainerID)
		asked <- ev.Hook().String() + " " + id
		return errors.New("a post hook's failure is nobody's")
	}
	slow := func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		<-release
		return tell(ctx, ev, adj)
	}
	m := on(abi.PostStartContainer, slow)
	m.Policy = plugin.Fail
	remove := on(abi.PostRemoveContainer, tell)
	pre := on(abi.PreUpdateContainerResources, tell)
	n := newNode(t, []plugin.Member{m, remove, pre})
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err) // although the post hook has not run
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	_, err = n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1"}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	_, err = n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	n.must(err)
	n.must(n.turns.Drain(t.Context()))
	for _, want := range []string{"PostStartContainer c1", "PreUpdateContainerResources c1", "PostRemoveContainer c1"} {
		if got := <-asked; got != want {
			t.Errorf("hook %q, want %q", got, want)
		}
	}
	if _, ok := n.store.Container("c1"); ok {
		t.Error("the record outlives the container")
	}
}

// A panic after the answer ends neither the process nor the object's later hooks.
func TestPanicInAPostHook(t *testing.T) {
	panicking := func(o *intercept.Options) {
		o.Chain = plugin.NewChain(o.Log, nil, func(plugin.Outcome) { panic("oh") }, on(abi.PostRunPodSandbox, nothing))
	}
	n := newNode(t, nil, panicking)
	n.runPod()
	if log := n.log.String(); !strings.Contains(log, "post hook panicked") || !strings.Contains(log, "oh") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}
