package docker

import (
	"sync/atomic"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// TestStandaloneDies: a container that Kubernetes did not make stops with its pod, whichever ID that has, and
// is ready again when Docker's restart policy starts it.
func TestStandaloneDies(t *testing.T) {
	d := NewEvents(pods.NewStore(), new(atomic.Bool), func() {})
	d.following.Store(true)
	d.store.Observe(nil, &runtimeapi.RunPodSandboxRequest{}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "random"})
	d.store.Observe(nil, &runtimeapi.CreateContainerRequest{PodSandboxId: "random"}, &runtimeapi.CreateContainerResponse{ContainerId: "c"})
	for _, test := range []struct {
		action    Action
		pod       runtimeapi.PodSandboxState
		container runtimeapi.ContainerState
	}{
		{Started, runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.ContainerState_CONTAINER_RUNNING},
		{Died, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, runtimeapi.ContainerState_CONTAINER_EXITED},
		{Started, runtimeapi.PodSandboxState_SANDBOX_READY, runtimeapi.ContainerState_CONTAINER_RUNNING},
	} {
		d.Follow(Event{ID: "c", Action: test.action, Alone: true})
		p, _ := d.store.Pod("random")
		if c, _ := d.store.Container("c"); p.State != test.pod || c.State != test.container {
			t.Errorf("after %s the pod is %v and the container %v", test.action, p.State, c.State)
		}
	}
}

// TestManyRemovals: however many containers Docker says that it has removed, the store looks after a bounded
// number of them, and is filled again for the rest.
func TestManyRemovals(t *testing.T) {
	refill := workqueue.NewTrigger()
	d := NewEvents(pods.NewStore(), new(atomic.Bool), refill.Notify)
	d.following.Store(true)
	for range 100 * maxRemovals {
		d.Follow(Event{ID: "c", Action: Destroyed})
		if n := d.removals.Load(); n > maxRemovals {
			t.Fatalf("%d removals are waited for", n)
		}
	}
	if len(refill) == 0 {
		t.Error("the store is not filled again")
	}
}
