package intercept_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// TestGate: a gate closes when nothing is inside and the queue is empty, opens again if that takes
// too long, and lets nobody in once it is handed over.
func TestGate(t *testing.T) {
	g, queue := new(intercept.Gate), workqueue.New()
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if !g.Enter(t.Context()) {
		t.Fatal("an open gate lets nobody in")
	}
	if err := g.Close(short(), queue); !errors.Is(err, context.DeadlineExceeded) || g.Closing() {
		t.Errorf("with a call inside: error %v, closing %v", err, g.Closing())
	}
	item := make(chan struct{})
	queue.Go("pod", func() { <-item })
	g.Leave()
	if err := g.Close(short(), queue); !errors.Is(err, context.DeadlineExceeded) || g.Closing() {
		t.Errorf("with a post hook that runs: error %v, closing %v", err, g.Closing())
	}
	close(item)
	if err := g.Close(t.Context(), queue); err != nil || !g.Closing() {
		t.Fatalf("with nothing inside: error %v, closing %v", err, g.Closing())
	}
	if g.Enter(short()) {
		t.Error("a closed gate lets a call in")
	}
	inside := make(chan bool)
	enter := func() { inside <- g.Enter(t.Context()) }
	go enter()
	g.Open()
	if !<-inside {
		t.Error("a gate that opens does not let in who waits")
	}
	g.Leave()
	if err := g.Close(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	go enter()
	g.HandOver(nil)
	if <-inside || !g.HandedOver() {
		t.Error("a gate that was handed over lets a call in")
	}
}
