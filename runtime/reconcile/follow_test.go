package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// The runtime may end calls of a process that was killed after the next one has filled its store, and
// those that it did not answer: the store is filled again after a start, and after such a call.
func TestFillsAfterLostCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := &Reconciler{Resync: workqueue.NewTrigger(), lost: workqueue.NewTrigger(), timing: DefaultTiming()}
		ended := make(chan struct{})
		go func() {
			r.followLost(ctx)
			close(ended)
		}()
		fills := func(want ...time.Duration) {
			t.Helper()
			var got []time.Duration
			for start, end := time.Now(), time.After(time.Hour); ; {
				select {
				case <-r.Resync:
					got = append(got, time.Since(start))
					continue
				case <-end:
				}
				break
			}
			if !slices.Equal(got, want) {
				t.Errorf("the store is filled after %v, want %v", got, want)
			}
		}
		fills(time.Second, 9*time.Second)
		r.Missed(false)
		fills(time.Second, 10*time.Second)
		r.Missed(true)
		fills(0)
		cancel()
		<-ended
	})
}
