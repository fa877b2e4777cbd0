// Package pool keeps instances of one kind: it makes them when they are needed, up to a
// fixed number, and hands each to one user at a time. It knows nothing of what an instance
// is, nor when one is fit to be used again.
package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Pool holds the instances of one plugin: at most a fixed number, made when
// they are needed, the one used last given out first, since it is the warmest.
// It knows nothing of what an instance is.
type Pool[G comparable] struct {
	open  func(context.Context) (G, error)
	close func(G)
	slots *semaphore.Weighted // one for each instance in use
	size  int

	mu     sync.Mutex
	idle   []G
	closed bool
}

// ErrClosed is the answer of a Pool that was closed.
var ErrClosed = errors.New("pool is closed")

// New returns a pool of at most size instances, which open makes and close ends.
func New[G comparable](size int, open func(context.Context) (G, error), close func(G)) *Pool[G] {
	return &Pool[G]{open: open, close: close, slots: semaphore.NewWeighted(int64(size)), size: size}
}

// Get returns an instance for the caller's sole use, waiting for one until ctx
// is done. The caller gives it back with Put or ends it with Discard.
func (p *Pool[G]) Get(ctx context.Context) (G, error) {
	var none G
	if p.slots.Acquire(ctx, 1) != nil {
		return none, fmt.Errorf("%w: waiting for one of %d instances: %w", plugin.ErrBusy, p.size, context.Cause(ctx))
	}
	got := false
	defer func() {
		if !got { // open may panic
			p.slots.Release(1)
		}
	}()
	g, ok, err := p.pop()
	if !ok && err == nil {
		g, err = p.open(ctx)
	}
	got = err == nil
	return g, err
}

// TryGet returns an instance that is idle, as Get does, and neither waits for one nor
// makes one.
func (p *Pool[G]) TryGet() (g G, ok bool) {
	if !p.slots.TryAcquire(1) {
		return g, false
	}
	if g, ok, _ = p.pop(); !ok {
		p.slots.Release(1)
	}
	return g, ok
}

func (p *Pool[G]) pop() (g G, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return g, false, ErrClosed
	}
	last := len(p.idle) - 1
	if last < 0 {
		return g, false, nil
	}
	g = p.idle[last]
	p.idle = p.idle[:last]
	return g, true, nil
}

// Put gives an instance back for the next caller.
func (p *Pool[G]) Put(g G) { p.put(g, true) }

// PutLast gives an instance back for the caller who finds no other idle.
func (p *Pool[G]) PutLast(g G) { p.put(g, false) }

// Promote makes an idle instance the next that is given out. It does nothing to one that is
// not idle.
func (p *Pool[G]) Promote(g G) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.idle, g); at >= 0 {
		copy(p.idle[at:], p.idle[at+1:])
		p.idle[len(p.idle)-1] = g
	}
}

// put adds an instance to the idle ones, the last of which is given out first.
func (p *Pool[G]) put(g G, first bool) {
	defer p.slots.Release(1)
	p.mu.Lock()
	closed, at := p.closed, 0
	if first {
		at = len(p.idle)
	}
	if !closed {
		p.idle = slices.Insert(p.idle, at, g)
	}
	p.mu.Unlock()
	if closed {
		p.close(g)
	}
}

// Discard ends an instance that is not to be used again.
func (p *Pool[G]) Discard(g G) {
	defer p.slots.Release(1)
	p.close(g)
}

// Close ends the idle instances; those in use end when they are given back.
func (p *Pool[G]) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, g := range idle {
		p.close(g)
	}
}
