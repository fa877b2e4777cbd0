package intercept

import (
	"context"
	"sync"
	"time"
)

// How much may be done at once on a node.
const (
	maxTurns   = 1024 // post hooks, and writes to other objects, waiting or running
	maxQueue   = 128  // of them of one object: one container that hangs must not take the room of all
	maxWriters = 8    // writes to other objects under way: the runtime has kubelet to serve beside
)

// longestWait is how long a call waits for an object's earlier turns that has no
// deadline of its own: kubelet pulls images without one.
const longestWait = 10 * time.Second

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
	if t.pending >= maxTurns || t.queues[object].length >= maxQueue {
		return false
	}
	before, done := t.enter(object)
	go func() {
		defer t.end(object, done)
		if before != nil {
			<-before
		}
		f()
	}()
	return true
}

// Take waits as Wait does and then has the object's turn, until end is called. With
// an error it has not, though what comes later waits for it all the same. It is for
// calls, of which none is turned away.
func (t *Turns) Take(ctx context.Context, object string) (end func(), err error) {
	t.mu.Lock()
	before, done := t.enter(object)
	t.mu.Unlock()
	if err = awaitTurn(ctx, before); err != nil {
		return func() {
			go func() {
				<-before
				t.end(object, done)
			}()
		}, err
	}
	return func() { t.end(object, done) }, nil
}

// enter adds a turn to the object's, which begins when before is closed, at once if
// it is nil, and ends with done. The caller holds the lock.
func (t *Turns) enter(object string) (before, done chan struct{}) {
	q, done := t.queues[object], make(chan struct{})
	if t.pending == 0 {
		t.idle = make(chan struct{})
	}
	t.pending++
	t.queues[object] = queue{q.length + 1, done}
	return q.last, done
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
// error, or with context.DeadlineExceeded after 10 s if ctx has no deadline.
func (t *Turns) Wait(ctx context.Context, object string) error {
	t.mu.Lock()
	last := t.queues[object].last
	t.mu.Unlock()
	return awaitTurn(ctx, last)
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

// awaitTurn waits for a turn to end, nil if there is none.
func awaitTurn(ctx context.Context, done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	if _, ends := ctx.Deadline(); ends {
		return await(ctx, done)
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	return await(ctx, done)
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
