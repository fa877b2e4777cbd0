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

// Turns of one object come one after another, those of another beside them; more
// than a node can bear are not taken, and Drain waits for all that were.
func TestTurns(t *testing.T) {
	turns := intercept.NewTurns()
	gate := make(chan struct{})
	var order []int // of one object: no two write at a time
	taken := 0
	for i := range 2000 {
		if turns.Go("slow", func() { <-gate; order = append(order, i) }) {
			taken++
		}
	}
	if taken == 0 || taken == 2000 {
		t.Errorf("%d turns were taken", taken)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := turns.Wait(soon, "slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for turns that do not end: %v", err)
	}
	if err := turns.Wait(t.Context(), "other"); err != nil {
		t.Errorf("waiting for an object without turns: %v", err)
	}
	if err := turns.Drain(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drained with turns that do not end: %v", err)
	}
	close(gate)
	if err := turns.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, n := range order {
		if i != n || len(order) != taken {
			t.Fatalf("turn %d of %d came as number %d of %d", n, taken, i, len(order))
		}
	}
	side := make(chan struct{})
	turns.Go("a", func() { <-side })
	if !turns.Go("b", func() { close(side) }) {
		t.Error("no turn is taken after the flood")
	}
	if err := turns.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An object whose turns do not end leaves room for those of all others.
func TestTurnsOfOneObject(t *testing.T) {
	turns := intercept.NewTurns()
	gate := make(chan struct{})
	for range 2000 {
		turns.Go("stuck", func() { <-gate })
	}
	if !turns.Go("other", func() {}) {
		t.Error("no turn is left for another object")
	}
	close(gate)
	if err := turns.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !turns.Go("stuck", func() {}) {
		t.Error("no turn is taken after the flood")
	}
	if err := turns.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kubelet pulls images without a deadline. A post hook that hangs holds up the next
// pull of the image for a while, and not for ever.
func TestCallWithoutDeadlineWaitsForTurns(t *testing.T) {
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
		n.must(n.turns.Drain(t.Context()))
	})
}

// Who could not wait for its turn holds up those that come later as long as what it
// could not wait for does, and as it does itself.
func TestTakeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns, gate, ran := intercept.NewTurns(), make(chan struct{}), false
		turns.Go("slow", func() { <-gate })
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		end, err := turns.Take(gone, "slow")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		turns.Go("slow", func() { ran = true })
		end()
		synctest.Wait()
		if ran {
			t.Error("a turn came before one that was given earlier had ended")
		}
		close(gate)
		if err := turns.Drain(t.Context()); err != nil || !ran {
			t.Errorf("the last turn came: %v, error %v", ran, err)
		}
	})
}
