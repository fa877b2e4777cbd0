package daemon

import (
	"context"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// refCounted ends when its last user releases it. A count of zero is final.
type refCounted struct {
	users atomic.Int64
	end   func()
}

func newRefCounted(end func()) *refCounted {
	c := &refCounted{end: end}
	c.users.Store(1)
	return c
}

// acquire reports whether the thing had not ended, and then keeps it until
// release is called.
func (c *refCounted) acquire() bool {
	for {
		n := c.users.Load()
		if n == 0 {
			return false
		}
		if c.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (c *refCounted) release() {
	if c.users.Add(-1) == 0 {
		c.end()
	}
}

// loaded is a plugin that generations share: it is closed when the last of them
// has ended.
type loaded struct {
	*refCounted
	plugin.Plugin
	breaker      *plugin.Breaker         // nil if it is asked whatever it does
	synchronized *intercept.Synchronized // what it knows; nil unless it has the hook
}

func newLoaded(observer observe.Observer, id string, p plugin.Plugin) *loaded {
	l := &loaded{Plugin: p, refCounted: newRefCounted(func() {
		ctx := context.Background()
		if err := p.Close(ctx); err != nil {
			observer.Observe(ctx, &observe.CloseFailed{Plugin: id, Err: err})
			return
		}
		observer.Observe(ctx, &observe.PluginClosed{Plugin: id})
	})}
	if manifest := p.Manifest(); manifest.HookSet().Has(abi.Synchronize) {
		l.synchronized = intercept.NewSynchronized()
	}
	return l
}

// generation is the routes that one set of plugins made. It ends when the
// daemon and the last call that uses it have let go.
type generation struct {
	*refCounted
	route   cri.Router
	members []member
	options intercept.Options // what its calls are intercepted with
	ended   func()            // called when it has ended, if not nil
}

// newGeneration returns a generation that keeps its plugins until it ends.
// route is set by the caller before anybody uses it.
func newGeneration(plugins []*loaded) *generation {
	for _, p := range plugins {
		p.acquire() // the caller has it, so it has not ended
	}
	g := &generation{}
	g.refCounted = newRefCounted(func() {
		for _, p := range plugins {
			p.release()
		}
		if g.ended != nil {
			g.ended()
		}
	})
	return g
}

// current is the generation that new calls use. The zero value routes nothing.
type current struct {
	live      atomic.Pointer[generation]
	podMissed func() // called after a pod was made that the generation of the moment did not see; may be nil
}

// swap makes g the generation of every call from now on.
func (c *current) swap(g *generation) {
	if old := c.live.Swap(g); old != nil {
		old.release()
	}
}

// Route is a cri.Router: it asks the generation of the moment. Whether a call
// that was routed ever sends its request is the caller's choice, so a
// generation is kept only from there on, until the call has ended.
func (c *current) Route(method string) cri.Interceptor {
	switch g := c.live.Load(); {
	case g == nil && makesPods(method):
		return c.pass
	case g == nil || g.route(method) == nil:
		return nil
	}
	return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		g := c.acquire()
		if g == nil { // the last plugin went meanwhile
			return c.pass(ctx, call, next)
		}
		defer g.release()
		if intercept := g.route(method); intercept != nil {
			return intercept(ctx, call, next)
		}
		return next(ctx, call.Request) // the one that came meanwhile hooks no such method
	}
}

// makesPods tells the calls after which there is one more pod.
func makesPods(method string) bool {
	m := cri.MethodNamed(method)
	return m != nil && m.Effect == cri.Makes && m.Object == abi.Pod
}

// pass lets a call pass that came while there was no generation. One that came
// meanwhile may have filled the store before the runtime had the pod.
func (c *current) pass(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
	resp, err := next(ctx, call.Request)
	if err == nil && c.podMissed != nil && c.live.Load() != nil {
		c.podMissed()
	}
	return resp, err
}

func (c *current) acquire() *generation {
	for {
		g := c.live.Load()
		if g == nil || g.acquire() {
			return g
		}
	}
}
