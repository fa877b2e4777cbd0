package docker

import (
	"cmp"
	"sync/atomic"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// removedTime is how long the answer to a removal may take to reach the store after Docker's event
// of it. Beyond maxRemovals at a time the store is filled again at once.
const (
	removedTime = time.Second
	maxRemovals = 1024
)

// Events bring to the store what happens to containers without a request that the proxy sees: with
// --rm Docker removes them, and with a restart policy it starts them. It is safe for concurrent use.
type Events struct {
	store     *pods.Store
	following *atomic.Bool // the store follows calls
	refill    func()       // has the store filled again, and does not wait
	removals  atomic.Int64 // that wait for the answer
}

// NewEvents returns Events of a store, while following is true. refill has the store filled again, and must not wait.
func NewEvents(store *pods.Store, following *atomic.Bool, refill func()) *Events {
	return &Events{store: store, following: following, refill: refill}
}

// Follow takes an event of a [Link].
func (c *Events) Follow(e Event) {
	if !c.following.Load() {
		return
	}
	switch {
	case e.Action == Destroyed && c.removals.Load() >= maxRemovals:
		c.refill()
	case e.Action == Destroyed:
		c.removals.Add(1)
		time.AfterFunc(removedTime, func() {
			defer c.removals.Add(-1)
			_, pod := c.store.Pod(e.ID)
			if _, container := c.store.Container(e.ID); pod || container {
				c.refill()
			}
		})
	case e.Action == Started && !e.Pod:
		c.store.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: e.ID}, nil)
	case e.Action == Died && e.Alone: // with its pod
		of, _ := c.store.Container(e.ID)
		c.store.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: cmp.Or(of.PodID, e.ID)}, nil)
	case e.Action == Died && !e.Pod:
		c.store.Observe(nil, &runtimeapi.StopContainerRequest{ContainerId: e.ID}, nil)
	case e.Action == Died:
		c.store.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: e.ID}, nil)
	}
}
