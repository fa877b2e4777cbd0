package workqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Items of one object run one after another, those of another beside them; more
// than a node can bear are not taken, and Drain waits for all that were.
func TestWorkQueue(t *testing.T) {
	queue := workqueue.New()
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
	queue := workqueue.New()
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

// A call that could not wait in its queue holds up later items as long as what it
// could not wait for does, and as it does itself.
func TestTakeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, gate, ran := workqueue.New(), make(chan struct{}), false
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
