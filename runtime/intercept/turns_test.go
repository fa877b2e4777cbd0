package intercept_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
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
