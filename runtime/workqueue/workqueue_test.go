package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
		t.Errorf("%d items were taken", taken)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := queue.Wait(soon, "slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for items that do not end: %v", err)
	}
	if err := queue.Wait(t.Context(), "other"); err != nil {
		t.Errorf("waiting for an object without items: %v", err)
	}
	if err := queue.Drain(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with items that do not end: %v", err)
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

// An object whose items do not end leaves room for those of all others.
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

// However many objects wait for calls of theirs, another one is reconciled. They follow, each once, when their calls have ended.
func TestReconcileBesideHangingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, looked := workqueue.New(), atomic.Int32{}
		look := func() []<-chan struct{} { looked.Add(1); return nil }
		gate := make(chan struct{})
		for i := range 20 {
			key := fmt.Sprint("hangs", i)
			queue.Go(key, func() { <-gate })
			queue.Reconcile(key, look)
			queue.Reconcile(key, look)
		}
		<-queue.Reconcile("another", look)
		if n := looked.Load(); n != 1 {
			t.Errorf("%d objects were reconciled, want the one without a call", n)
		}
		close(gate)
		if err := queue.Drain(t.Context()); err != nil || looked.Load() != 21 {
			t.Errorf("%d objects were reconciled, want 21: %v", looked.Load(), err)
		}
	})
}

// A post hook has room while all objects of a full node are to be reconciled, as they are when the runtime is back.
func TestPostHookWhileAllIsReconciled(t *testing.T) {
	queue, gate := workqueue.New(), make(chan struct{})
	for i := range 2000 {
		queue.Reconcile(fmt.Sprint("container", i), func() []<-chan struct{} { <-gate; return nil })
	}
	if !queue.Go("another", func() {}) {
		t.Error("the post hook was not taken")
	}
	close(gate)
	if err := queue.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An object has been reconciled when that of which it says that it follows has, which may need the room of the first.
func TestReconcileWithWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, pods := workqueue.New(), atomic.Int32{}
		var all []<-chan struct{}
		for i := range 20 {
			all = append(all, queue.Reconcile(fmt.Sprint("container", i), func() []<-chan struct{} {
				return []<-chan struct{}{queue.Reconcile(fmt.Sprint("pod", i), func() []<-chan struct{} { pods.Add(1); return nil })}
			}))
		}
		for _, done := range all {
			<-done
		}
		if n := pods.Load(); n != 20 {
			t.Errorf("%d pods were reconciled before their containers were done", n)
		}
	})
}
