package intercept

import (
	"context"
	"sync"
)

// maxTurns is how many post hooks may wait or run at once on a node.
const maxTurns = 1024

// Turns runs post hooks after the answer has gone to the caller: those of one
// object one after another, those of different objects side by side.
type Turns struct {
	mu      sync.Mutex
	last    map[string]chan struct{} // per object; closed when its newest turn has ended
	pending int
	idle    chan struct{} // closed while nothing is pending
}

// NewTurns returns a Turns with nothing to do.
func NewTurns() *Turns {
	t := &Turns{last: map[string]chan struct{}{}, idle: make(chan struct{})}
	close(t.idle)
	return t
}

// Go runs f after all that was given for the object before. It answers false,
// and does not run f, if too much is waiting already.
func (t *Turns) Go(object string, f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending >= maxTurns {
		return false
	}
	if t.pending == 0 {
		t.idle = make(chan struct{})
	}
	t.pending++
	before, done := t.last[object], make(chan struct{})
	t.last[object] = done
	go func() {
		defer t.end(object, done)
		if before != nil {
			<-before
		}
		f()
	}()
	return true
}

func (t *Turns) end(object string, done chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(done)
	if t.last[object] == done {
		delete(t.last, object)
	}
	if t.pending--; t.pending == 0 {
		close(t.idle)
	}
}

// Wait returns when all that was given for the object has ended, or with ctx's
// error.
func (t *Turns) Wait(ctx context.Context, object string) error {
	t.mu.Lock()
	last := t.last[object]
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	return await(ctx, last)
}

// Drain returns when nothing is waiting or running, or with ctx's error.
func (t *Turns) Drain(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	return await(ctx, idle)
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
