package intercept

import (
	"context"
	"sync"
)

// How much may be done at once on a node.
const (
	maxTurns   = 1024 // post hooks, and writes to other objects, waiting or running
	maxQueue   = 128  // of them of one object: one container that hangs must not take the room of all
	maxWriters = 8    // writes to other objects under way: the runtime has kubelet to serve beside
)

// Turns runs post hooks after the answer has gone to the caller: those of one
// object one after another, those of different objects side by side.
type Turns struct {
	mu      sync.Mutex
	queues  map[string]queue // by object
	pending int
	idle    chan struct{} // closed while nothing is pending
	writers chan struct{} // holds one for each write to another object under way
}

// queue is the turns of one object that have not ended.
type queue struct {
	length int
	last   chan struct{} // closed when the newest has ended
}

// NewTurns returns a Turns with nothing to do.
func NewTurns() *Turns {
	t := &Turns{queues: map[string]queue{}, idle: make(chan struct{}), writers: make(chan struct{}, maxWriters)}
	close(t.idle)
	return t
}

// Go runs f after all that was given for the object before. It answers false,
// and does not run f, if too much is waiting already.
func (t *Turns) Go(object string, f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, done := t.queues[object], make(chan struct{})
	if t.pending >= maxTurns || before.length >= maxQueue {
		return false
	}
	if t.pending == 0 {
		t.idle = make(chan struct{})
	}
	t.pending++
	t.queues[object] = queue{before.length + 1, done}
	go func() {
		defer t.end(object, done)
		if before.last != nil {
			<-before.last
		}
		f()
	}()
	return true
}

func (t *Turns) end(object string, done chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(done)
	q := t.queues[object]
	if q.length--; q.length == 0 {
		delete(t.queues, object)
	} else {
		t.queues[object] = q
	}
	if t.pending--; t.pending == 0 {
		close(t.idle)
	}
}

// Wait returns when all that was given for the object has ended, or with ctx's
// error.
func (t *Turns) Wait(ctx context.Context, object string) error {
	t.mu.Lock()
	last := t.queues[object].last
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	return await(ctx, last)
}

// writer waits until one more write may be under way, which ends with done, or
// returns errBusy when ctx is done before.
func (t *Turns) writer(ctx context.Context) (done func(), err error) {
	select {
	case t.writers <- struct{}{}:
		return func() { <-t.writers }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// Drain returns when nothing is waiting or running, or with ctx's error.
func (t *Turns) Drain(ctx context.Context) error {
	t.mu.Lock()
	idle := t.idle
	t.mu.Unlock()
	return await(ctx, idle)
}

// await waits for done. What is done already is, whatever ctx says.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
