package intercept_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Items of one object run one after another, those of another beside them; more
// than a node can bear are not taken, and Drain waits for all that were.
func TestWorkQueue(t *testing.T) {
	queue := intercept.NewWorkQueue()
	gate := make(chan struct{})
	var order []int // of one object: no two write at a time
	taken := 0
	for i := range 2000 {
		if queue.Go("slow", func() { <-gate; order = append(order, i) }) {
			taken++
		}
	}
	if taken == 0 || taken == 2000 {
		t.Errorf("%d queue were taken", taken)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := queue.Wait(soon, "slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for queue that do not end: %v", err)
	}
	if err := queue.Wait(t.Context(), "other"); err != nil {
		t.Errorf("waiting for an object without queue: %v", err)
	}
	if err := queue.Drain(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with queue that do not end: %v", err)
	}
	close(gate)
	if err := queue.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, n := range order {
		if i != n || len(order) != taken {
			t.Fatalf("item %d of %d came as number %d of %d", n, taken, i, len(order))
		}
	}
	side := make(chan struct{})
	queue.Go("a", func() { <-side })
	if !queue.Go("b", func() { close(side) }) {
		t.Error("nothing is queued after the flood")
	}
	if err := queue.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An object whose queue do not end leaves room for those of all others.
func TestWorkQueueOfOneObject(t *testing.T) {
	queue := intercept.NewWorkQueue()
	gate := make(chan struct{})
	for range 2000 {
		queue.Go("stuck", func() { <-gate })
	}
	if !queue.Go("other", func() {}) {
		t.Error("no room is left for another object")
	}
	close(gate)
	if err := queue.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !queue.Go("stuck", func() {}) {
		t.Error("nothing is queued after the flood")
	}
	if err := queue.Drain(t.Context()); err != nil {
		t.Fatal(err)
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

// A call that could not wait in its queue holds up later items as long as what it
// could not wait for does, and as it does itself.
func TestTakeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, gate, ran := intercept.NewWorkQueue(), make(chan struct{}), false
		queue.Go("slow", func() { <-gate })
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		end, err := queue.Acquire(gone, "slow")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		queue.Go("slow", func() { ran = true })
		end()
		synctest.Wait()
		if ran {
			t.Error("an item ran before one that was given earlier had ended")
		}
		close(gate)
		if err := queue.Drain(t.Context()); err != nil || !ran {
			t.Errorf("the last item ran: %v, error %v", ran, err)
		}
	})
}
