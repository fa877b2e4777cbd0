package intercept_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
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
	n.late = true
	n.runPod()
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c1"}, &runtimeapi.StartContainerResponse{})
	n.must(err) // although the post hook has not run
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	_, err = n.call(t.Context(), "UpdateContainerResources", &runtimeapi.UpdateContainerResourcesRequest{ContainerId: "c1"}, &runtimeapi.UpdateContainerResourcesResponse{})
	n.must(err)
	_, err = n.call(t.Context(), "RemoveContainer", &runtimeapi.RemoveContainerRequest{ContainerId: "c1"}, &runtimeapi.RemoveContainerResponse{})
	n.must(err)
	n.must(n.queue.Drain(t.Context()))
	close(asked)
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
		o.Chain = plugin.NewChain(observe.Func(func(context.Context, observe.Event) { panic("oh") }), 0, on(abi.PostRunPodSandbox, nothing))
	}
	n := newNode(t, nil, panicking)
	n.runPod()
	if log := n.log.String(); !strings.Contains(log, `"panic","during":"a post hook"`) || !strings.Contains(log, "oh") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

// TestPostHooksOfFailedCalls: nobody hears of what did not happen, but those
// plugins that are to.
func TestPostHooksOfFailedCalls(t *testing.T) {
	asked := make(chan string, 8)
	tell := func(who string) function {
		return func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
			asked <- who + " " + ev.Hook().String()
			return nil
		}
	}
	always := on(abi.PostStopContainer, tell("always"))
	after := func(o *intercept.Options) { o.AfterFailure = plugin.NewChain(o.Observer, 0, always) }
	n := newNode(t, []plugin.Member{on(abi.PostStopContainer, tell("both"))}, after)
	n.runPod()
	stop := func() error {
		_, err := n.call(t.Context(), "StopContainer", &runtimeapi.StopContainerRequest{ContainerId: "c1"}, &runtimeapi.StopContainerResponse{})
		n.must(n.queue.Drain(t.Context()))
		return err
	}
	n.fails = errors.New("no")
	if err := stop(); err == nil {
		t.Error("the failure did not reach the caller")
	}
	n.fails = nil
	n.must(stop())
	close(asked)
	for _, want := range []string{"always PostStopContainer", "both PostStopContainer", ""} {
		if got := <-asked; got != want {
			t.Errorf("hook %q, want %q", got, want)
		}
	}
}

// A sandbox that was not made has no id, and its hooks hold up no other's.
func TestFailedSandboxHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		slow := on(abi.PostRunPodSandbox, func(context.Context, plugin.Event, *plugin.Adjustment) error { <-gate; return nil })
		pre := on(abi.PreRunPodSandbox, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil })
		n := newNode(t, []plugin.Member{pre}, func(o *intercept.Options) { o.AfterFailure = plugin.NewChain(o.Observer, 0, slow) })
		n.late = true
		run := func(name string) {
			config := podConfig()
			config.Metadata.Name, config.Metadata.Uid = name, name
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond) // of which hooks have 300 ms
			defer cancel()
			if _, err := n.call(ctx, "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, nil); status.Code(err) != codes.Unknown {
				t.Errorf("%s: %v", name, err)
			}
		}
		n.fails = status.Error(codes.Unknown, "no network")
		run("a")
		run("b")
		if strings.Contains(n.log.String(), "earlier post hooks have not ended") {
			t.Errorf("the second pod waited for the first one's hook:\n%s", n.log)
		}
		run("a")
		if !strings.Contains(n.log.String(), "earlier post hooks have not ended") {
			t.Error("the pod's own hooks do not wait for each other")
		}
		close(gate)
		n.must(n.queue.Drain(t.Context()))
	})
}

// A panic of the proxy's own in a hook that no call carries ends that hook and no more.
func TestPanicApartFromCalls(t *testing.T) {
	n := newNode(t, nil)
	n.options.NewChain = func(m ...plugin.Member) *plugin.Chain {
		return plugin.NewChain(observe.Func(func(context.Context, observe.Event) { panic("oh") }), 0, m...)
	}
	intercept.Tick(t.Context(), n.options, on(abi.Tick, func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil }), "")
	if log := n.log.String(); !strings.Contains(log, `"panic","during":"a hook"`) || !strings.Contains(log, `"hook":"Tick"`) {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

// The post hook has an event of its own: what a plugin kept of the pre hook's event does not
// change under it.
func TestEachHookHasItsOwnEvent(t *testing.T) {
	var events []plugin.Event
	keep := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		events = append(events, ev)
		return nil
	}
	n := newNode(t, []plugin.Member{on(abi.PreRunPodSandbox, keep), on(abi.PostRunPodSandbox, keep)})
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: podConfig()}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
	n.must(err)
	n.must(n.queue.Drain(t.Context()))
	if len(events) != 2 {
		t.Fatalf("%d hooks were called", len(events))
	}
	for i, want := range []struct {
		hook abi.Hook
		id   string
	}{{abi.PreRunPodSandbox, ""}, {abi.PostRunPodSandbox, "pod1"}} {
		if id, _ := events[i].Text(abi.Pod, abi.PodID); events[i].Hook() != want.hook || id != want.id {
			t.Errorf("the event of %v is one of %v and pod %q", want.hook, events[i].Hook(), id)
		}
	}
}

// kubelet pulls images without a deadline. A post hook that hangs holds up the next
// pull of the image for a while, and not for ever.
func TestCallWithoutDeadlineWaitsForItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		n := newNode(t, []plugin.Member{
			on(abi.PostPullImage, func(context.Context, plugin.Event, *plugin.Adjustment) error { <-gate; return nil }),
			on(abi.PrePullImage, nothing),
		})
		n.late = true
		pull := func() {
			_, err := n.call(t.Context(), "PullImage", &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: "web:1"}}, &runtimeapi.PullImageResponse{})
			n.must(err)
		}
		pull()
		start := time.Now()
		pull()
		if waited := time.Since(start); waited != 10*time.Second || !strings.Contains(n.log.String(), "earlier post hooks have not ended") {
			t.Errorf("waited %v; the log:\n%s", waited, n.log)
		}
		close(gate)
		n.must(n.queue.Drain(t.Context()))
	})
}
