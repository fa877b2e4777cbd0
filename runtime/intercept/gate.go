package intercept

import (
	"context"
	"sync"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Gate keeps the state of plugins, which are the ledger, cgroup files and what plugins remember,
// with one process at a time. Everything that may change it is inside the gate meanwhile. To give
// the state to another process, this one closes the gate, which waits until nothing is inside, and
// hands it over, which is final. A nil Gate is always open. Its methods are safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	inside  int
	state   gateState
	changed chan struct{} // closed when the state changes, or the last one leaves a closed gate; nil: nobody waits
	leave   func(Left)    // once it is handed over
}

type gateState uint8

const (
	gateOpen gateState = iota
	gateClosed
	gateHandedOver
)

// Left is a call whose pre hooks ran in one process and that ended after another one had the state.
type Left struct {
	Method  string     // as on the wire
	Request *cri.Frame // as the caller sent it
	Answer  *cri.Frame // nil if the call failed
}

// Enter waits while the gate is closed. It reports true if the caller is inside, which then calls
// Leave, and false if another process has the state or ctx is done.
func (g *Gate) Enter(ctx context.Context) (inside bool) {
	if g == nil {
		return true
	}
	for {
		g.mu.Lock()
		switch g.state {
		case gateOpen:
			g.inside++
			g.mu.Unlock()
			return true
		case gateHandedOver:
			g.mu.Unlock()
			return false
		}
		changed := g.change()
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Return is Enter for what follows the answer of a call. If another process has the state, it is
// left to that.
func (g *Gate) Return(ctx context.Context, l Left) (inside bool) {
	inside = g.Enter(ctx)
	if !inside && g.HandedOver() {
		g.leave(l)
	}
	return inside
}

// Leave ends what Enter or Return began.
func (g *Gate) Leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 {
		g.tell()
	}
}

// Closing reports whether something waits until nothing is inside. Work that has parts ends then
// early.
func (g *Gate) Closing() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state == gateClosed
}

// HandedOver reports whether another process has the state.
func (g *Gate) HandedOver() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state == gateHandedOver
}

// Close closes the gate, and returns when nothing is inside and the queue is empty. With ctx's
// end it opens again, and the error is ctx's.
func (g *Gate) Close(ctx context.Context, queue *workqueue.Queue) error {
	g.set(gateClosed)
	err := g.awaitEmpty(ctx)
	if err == nil {
		err = queue.Drain(ctx)
	}
	if err != nil {
		g.Open()
	}
	return err
}

// Open opens a gate that was closed.
func (g *Gate) Open() { g.set(gateOpen) }

// HandOver says that another process has the state from now on. leave gets the calls that come
// back to the gate afterwards.
func (g *Gate) HandOver(leave func(Left)) {
	g.mu.Lock()
	g.leave = leave
	g.mu.Unlock()
	g.set(gateHandedOver)
}

func (g *Gate) set(s gateState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
	g.tell()
}

func (g *Gate) awaitEmpty(ctx context.Context) error {
	for {
		g.mu.Lock()
		empty, changed := g.inside == 0, g.change()
		g.mu.Unlock()
		if empty {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change returns a channel that tell closes. The caller has the lock.
func (g *Gate) change() <-chan struct{} {
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return g.changed
}

// tell wakes those that wait for a change. The caller has the lock.
func (g *Gate) tell() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// outside asks the backend. A call that may take long, and in which plugins have changed nothing,
// is outside the gate meanwhile. left is true if it came back to find that another process has the
// state, which then does what follows the answer.
func (c *call) outside(ctx context.Context, out *cri.Frame, next cri.Next) (answer *cri.Frame, left bool, err error) {
	if !c.mayTakeLong() || len(c.owned) > 0 || c.Gate == nil {
		answer, err = next(ctx, out)
		return answer, false, err
	}
	c.Gate.Leave()
	defer func() { // also if next panics: the caller leaves the gate
		left = !c.Gate.Return(context.Background(), Left{c.method.Name, c.Request, answer})
	}()
	answer, err = next(ctx, out)
	return answer, false, err
}

// mayTakeLong reports whether a call of the method may take as long as a pod needs to stop, or an
// image to come. What makes or changes an object has values of plugins to write after the answer,
// and what removes one has a post hook of which only this process knows the object.
func (c *call) mayTakeLong() bool {
	return c.method.Effect == cri.Stops || c.method.Effect == cri.Nothing
}

// Finish does what follows the answer of a call that began in another process.
func Finish(ctx context.Context, o Options, l Left) {
	m := cri.MethodNamed(l.Method)
	if m == nil {
		return
	}
	c := &call{interceptor: newInterceptor(o, *m), Call: &cri.Call{Request: l.Request}, req: m.NewRequest()}
	if l.Request.Decode(c.req) != nil || c.prepare(ctx) != nil {
		return
	}
	if l.Answer == nil {
		if c.Lost != nil && m.Effect != cri.Nothing { // the runtime may have done it
			c.Lost()
		}
		c.postFailure(ctx)
		return
	}
	after := c.observe(ctx, l.Answer)
	if after != nil {
		c.settle(ctx, after)
	}
	c.post(ctx, after, c.Chain)
}
