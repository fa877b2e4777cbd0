// Package workqueue has the work on pods and containers done in order: one object's pieces one after another, and those of different
// objects side by side. It knows of no object but its key, and never says what work is. A Saver is work of one kind, behind a Trigger:
// files are written in the background, and again after a failure. What is in them is its owner's.
package workqueue

import (
	"context"
	"sync"
	"time"
)

// How much may be done at once on a node.
const (
	maxItems      = 1024 // post hooks, waiting or running
	maxPerKey     = 128  // of them of one object: one container that hangs must not take the room of all
	maxReconciled = 8    // objects that are reconciled, and have waited for no call: the runtime has kubelet to serve beside
)

// maxQueueWait is how long a call without a deadline waits for an object's earlier items:
// kubelet pulls images without one.
const maxQueueWait = 10 * time.Second

// Queue runs post hooks, and reconciles objects: what is of one object one after another,
// and of different objects side by side. The keys are objects. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	queues  map[string]items // by key
	pending int
	idle    chan struct{} // closed while nothing is pending

	hooks   chan struct{}            // holds one for each post hook, waiting or running
	waiting map[string]chan struct{} // closed when they were reconciled; those that wait for it, by key
	slots   chan struct{}            // holds one for each object that is reconciled
}

// items is the items of one key that have not ended.
type items struct {
	length int
	last   chan struct{} // closed when the newest has ended
}

// New returns an empty Queue.
func New() *Queue {
	w := &Queue{
		queues: map[string]items{}, idle: make(chan struct{}), hooks: make(chan struct{}, maxItems),
		waiting: map[string]chan struct{}{}, slots: make(chan struct{}, maxReconciled),
	}
	close(w.idle)
	return w
}

// Go runs f, a post hook, after all earlier items of the key. It returns false, and does not run f, if too
// many are waiting already. How many objects are to be reconciled does not matter: that may be all of a node's.
func (w *Queue) Go(key string, f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues[key].length >= maxPerKey {
		return false
	}
	select {
	case w.hooks <- struct{}{}:
	default:
		return false
	}
	before, done := w.push(key)
	go func() {
		defer w.end(key, done)
		defer func() { <-w.hooks }()
		if before != nil {
			<-before
		}
		f()
	}()
	return true
}

// Reconcile runs f after the earlier items of the key, once a few others at most are reconciled. A key that waits
// already does not wait twice: f looks at all that is to be done for its object when it runs. Nothing is turned
// away. done is closed when f has run, and so has what f says that follows from it.
func (w *Queue) Reconcile(key string, f func() (then []<-chan struct{})) (done <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waits := w.waiting[key]; waits != nil {
		return waits
	}
	reconciled := make(chan struct{})
	w.waiting[key] = reconciled
	w.add()
	go w.reconcile(key, f, reconciled)
	return reconciled
}

func (w *Queue) reconcile(key string, f func() (then []<-chan struct{}), reconciled chan struct{}) {
	w.slots <- struct{}{}
	w.mu.Lock()
	before, done := w.push(key)
	w.mu.Unlock()
	if before != nil { // a call that hangs must not keep others from being reconciled
		<-w.slots
		<-before
	}
	w.mu.Lock()
	delete(w.waiting, key) // what is asked for from here on is another look
	w.mu.Unlock()
	then := f()
	w.end(key, done)
	if before == nil {
		<-w.slots
	}
	for _, follows := range then {
		<-follows
	}
	close(reconciled)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subtract()
}

// Acquire waits as Wait does and then holds back later items of the key until release is
// called. After an error it does not wait any more, and later items still wait for the earlier
// ones. It is for calls, none of which is turned away.
func (w *Queue) Acquire(ctx context.Context, key string) (release func(), err error) {
	w.mu.Lock()
	before, done := w.push(key)
	w.mu.Unlock()
	if err = awaitItem(ctx, before); err != nil {
		return func() {
			go func() {
				<-before
				w.end(key, done)
			}()
		}, err
	}
	return func() { w.end(key, done) }, nil
}

// Len returns how many items have not ended.
func (w *Queue) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pending
}

// push adds an item to a queue. The item begins when before is closed, at once if before is
// nil, and ends with done. The caller holds the lock.
func (w *Queue) push(key string) (before, done chan struct{}) {
	q, done := w.queues[key], make(chan struct{})
	w.add()
	w.queues[key] = items{q.length + 1, done}
	return q.last, done
}

func (w *Queue) end(key string, done chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(done)
	q := w.queues[key]
	if q.length--; q.length == 0 {
		delete(w.queues, key)
	} else {
		w.queues[key] = q
	}
	w.subtract()
}

// add counts what has not ended, and subtract what has. The caller holds the lock.
func (w *Queue) add() {
	if w.pending == 0 {
		w.idle = make(chan struct{})
	}
	w.pending++
}

func (w *Queue) subtract() {
	if w.pending--; w.pending == 0 {
		close(w.idle)
	}
}

// Wait returns when all items of the key have ended, or with ctx's error, or with
// context.DeadlineExceeded after 10 s if ctx has no deadline.
func (w *Queue) Wait(ctx context.Context, key string) error {
	w.mu.Lock()
	last := w.queues[key].last
	w.mu.Unlock()
	return awaitItem(ctx, last)
}

// Drain returns when nothing is waiting or running, or with ctx's error.
func (w *Queue) Drain(ctx context.Context) error {
	w.mu.Lock()
	idle := w.idle
	w.mu.Unlock()
	return await(ctx, idle)
}

// awaitItem waits for an item to end, nil if there is none.
func awaitItem(ctx context.Context, done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	if _, ends := ctx.Deadline(); ends {
		return await(ctx, done)
	}
	ctx, cancel := context.WithTimeout(ctx, maxQueueWait)
	defer cancel()
	return await(ctx, done)
}

// await waits for done. A done that is closed already counts, whatever ctx says.
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
