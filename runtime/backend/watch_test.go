package backend

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// states is a connection that goes through states faster than anybody looks,
// which a real one cannot be made to do on purpose: each look finds the next.
type states struct {
	next []connectivity.State
	end  context.CancelFunc
}

func (s *states) Target() string { return "unix:///runtime.sock" }
func (s *states) Connect()       {}

func (s *states) GetState() connectivity.State { return s.next[0] }

func (s *states) WaitForStateChange(ctx context.Context, _ connectivity.State) bool {
	if s.next = s.next[1:]; len(s.next) == 1 {
		s.end()
	}
	return ctx.Err() == nil
}

// A runtime that restarted between two looks at the connection has other
// containers than the store.
func TestRestartThatNobodySaw(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := []connectivity.State{connectivity.Connecting, connectivity.Ready, connectivity.Connecting, connectivity.Ready, connectivity.Ready, connectivity.Idle}
	b := &Backend{conn: &states{next: seen, end: cancel}, store: pods.NewStore(), observer: observe.Discard()}
	b.life.Store(1)
	filled := 0
	b.Watch(ctx, func(context.Context) {
		filled++
		b.filled.Store(b.life.Load())
	})
	if filled != 3 {
		t.Errorf("the store was filled %d times over two restarts, want 3", filled)
	}
}

// Each loss of the connection counts, also if the runtime is back at once. That the runtime starts after the proxy is none.
func TestLossesAreCounted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := []connectivity.State{connectivity.TransientFailure}
	for range 5 {
		seen = append(seen, connectivity.Connecting, connectivity.Ready)
	}
	seen = append(seen, connectivity.TransientFailure, connectivity.Idle)
	b := &Backend{conn: &states{next: seen, end: cancel}, store: pods.NewStore(), observer: observe.Discard()}
	b.life.Store(1)
	b.Watch(ctx, func(context.Context) { b.filled.Store(b.life.Load()) })
	if n := b.Disconnects(); n != 5 {
		t.Errorf("the connection was lost 5 times, and %d are counted", n)
	}
}

// A runtime that restarts while the store is filled, and is back before that has ended, has other containers than the
// store, too.
func TestRestartWhileTheStoreIsFilled(t *testing.T) {
	path := socketPath(t)
	server, b := serve(t, path), connect(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fills := 0
	b.Watch(ctx, func(ctx context.Context) {
		b.filled.Store(b.life.Load())
		if fills++; fills == 2 {
			cancel()
			return
		}
		server.Stop()
		serve(t, path)
		for ctx.Err() == nil { // a call has the connection made again
			if _, err := b.Client.Status(ctx, &runtimeapi.StatusRequest{}); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	if fills != 2 {
		t.Errorf("the store was filled %d times, want 2", fills)
	}
}

// up is a connection that stays up.
type up struct{}

func (up) Target() string               { return "unix:///runtime.sock" }
func (up) Connect()                     {}
func (up) GetState() connectivity.State { return connectivity.Ready }
func (up) WaitForStateChange(ctx context.Context, _ connectivity.State) bool {
	<-ctx.Done()
	return false
}

// What could not be filled is tried again while the connection stays up.
func TestFillIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &Backend{conn: up{}, store: pods.NewStore(), observer: observe.Discard()}
		b.life.Store(1)
		tries := 0
		b.Watch(ctx, func(context.Context) {
			if tries++; tries == 3 {
				b.filled.Store(b.life.Load())
				cancel()
			}
		})
		if tries != 3 {
			t.Errorf("%d tries", tries)
		}
	})
}

// What the runtime cannot describe is asked for again, ever less often, by one timer.
func TestUnreadIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		again := workqueue.NewTrigger()
		u := unread{again: again}
		u.begin(1) // another fill, before the first time
		for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600} {
			start := time.Now()
			u.begin(1)
			<-again
			if after := time.Since(start); after != want*time.Second {
				t.Errorf("after %v, want %v", after, want*time.Second)
			}
		}
		for _, more := range []int{2, 1} { // another one cannot be described; after the end one
			u.begin(more)
			if u.after != retryTime {
				t.Errorf("with %d it is asked after %v, want %v", more, u.after, retryTime)
			}
			u.end()
		}
		time.Sleep(time.Hour)
		if len(again) > 0 {
			t.Errorf("after the end: %d more", len(again))
		}
	})
}
