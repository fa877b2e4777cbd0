package proxy_test

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// TestNothingLeaks: calls that ended in any way leave no goroutine behind.
func TestNothingLeaks(t *testing.T) {
	conn := through(t, echo)
	call := func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		invoke(ctx, conn, version, []byte("unary"))
		finished := open(t, ctx, conn, chat)
		finished.CloseSend()
		receiveAll(finished)
		half := open(t, ctx, conn, chat) // which cancel ends
		sendAll(half, []byte("one"))
		var b []byte
		half.RecvMsg(&b)
		sendAll(open(t, ctx, conn, events), []byte("two"))
	}
	call()
	before := runtime.NumGoroutine()
	for range 100 {
		call()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		now := runtime.NumGoroutine()
		if now <= before+2 {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines were %d before:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
