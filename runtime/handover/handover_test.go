package handover

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newPair returns both ends of a channel.
func newPair(t *testing.T) (a, b *channel) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*channel
	for i, fd := range pair {
		if ends[i], err = newChannel(os.NewFile(uintptr(fd), "end")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].conn.Close() })
	}
	return ends[0], ends[1]
}

// TestWaitEndsWithContext: a process that is to stop does not wait for the other one.
func TestWaitEndsWithContext(t *testing.T) {
	a, _ := newPair(t)
	s := &Successor{channel: a}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := s.AwaitPrepared(ctx, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
}

// TestCallsAreLeftAtOnce: calls that several goroutines leave come whole.
func TestCallsAreLeftAtOnce(t *testing.T) {
	a, b := newPair(t)
	s, p := &Successor{channel: a}, &Predecessor{channel: b}
	const calls = 50
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if err := s.Leave(Left{Method: "/stop", Request: make([]byte, 20_000)}); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range calls {
		if l, ok := p.Left(); !ok || l.Method != "/stop" || len(l.Request) != 20_000 {
			t.Fatalf("call %d: %v, %q with %d bytes", i, ok, l.Method, len(l.Request))
		}
	}
	all.Wait()
}
