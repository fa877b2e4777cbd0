package daemon

import (
	"context"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
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
	breaker *plugin.Breaker // nil if it is asked whatever it does
}

// generation is the plugins that calls use at one time, and their routes. It keeps its plugins,
// and ends when the daemon and the last call that uses it have let go.
type generation struct {
	*refCounted
	members []member
	route   cri.Router
	options intercept.Options // that its calls are intercepted with
}

// generation makes the routes of these members, which the caller has, so that none has ended.
func (d *daemon) generation(members []member) *generation {
	g := &generation{members: members, refCounted: newRefCounted(func() {
		for _, m := range members {
			m.loaded.release()
		}
		d.syncTrigger.notify()
	})}
	g.options = d.options(members)
	g.options.Keep = func() func() { g.acquire(); return g.release } // called by a call, which keeps g
	chain := make([]plugin.Member, len(members))
	for i, m := range members {
		m.loaded.acquire()
		chain[i] = m.Member
		if m.synchronizes() {
			chain[i] = m.synchronized.Member(g.options, m.Member)
		}
	}
	g.options.Chain = g.options.NewChain(chain...)
	g.route = intercept.Router(g.options)
	return g
}

// enforcer has the values of plugins hold.
func (d *daemon) enforcer() *enforce.Enforcer {
	return &enforce.Enforcer{
		Observer: d.observer, Store: d.store, Backend: d.backend.client, Ledger: d.ledger, Cgroups: d.cgroups, Node: &d.backend.node, Queue: d.queue,
	}
}

// options are what these members' calls are intercepted with, but for the chain. All plugins
// of one call together have at least the longest timeout of one of them.
func (d *daemon) options(members []member) intercept.Options {
	var files plugin.Files // nil without cgroups, which a nil *cgroup.FS is not
	if d.cgroups != nil {
		files = d.cgroups
	}
	o := intercept.Options{
		Enforcer: *d.enforcer(), CallTime: intercept.DefaultCallTime, Lost: d.lostTrigger.notify,
		NewChain: func(chain ...plugin.Member) *plugin.Chain { return plugin.NewChain(d.observer, files, chain...) },
	}
	if len(members) > 0 {
		o.Generations = make(map[string]string, len(members))
		o.Cut = d.bypass.cut.Load()
	}
	if d.config.Mode != config.ModeDocker { // in which callers choose a container's namespace
		o.ExemptNamespaces = d.config.Exempt
	}
	if d.traces != nil {
		o.Around = d.traces.Around
	}
	var always []plugin.Member
	for _, m := range members {
		o.CallTime = max(o.CallTime, m.time)
		o.Generations[m.ID] = m.generation
		if m.always {
			always = append(always, m.Member)
		}
		if m.synchronizes() {
			o.Synchronized = append(o.Synchronized, m.synchronized)
		}
	}
	if always != nil {
		o.AfterFailure = plugin.NewChain(d.observer, nil, always...)
	}
	return o
}

// current is the generation that new calls use. The zero value routes nothing.
type current struct {
	live       atomic.Pointer[generation] // nil: there is no plugin, or all are bypassed
	passUpdate cri.Interceptor            // passes an update of a container while there is no generation; may be nil
	missed     func(answered bool)        // called after a call that the generation of the moment did not see; may be nil
	told       bool                       // the runtime tells of containers that start, stop and go
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
	g := c.live.Load()
	if g == nil {
		return c.pipe(method)
	}
	if g.route(method) == nil {
		return nil
	}
	return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		g := c.acquire()
		if g == nil { // the last plugin went meanwhile
			if pipe := c.pipe(method); pipe != nil {
				return pipe(ctx, call, next)
			}
			return next(ctx, call.Request)
		}
		defer g.release()
		if intercept := g.route(method); intercept != nil {
			return intercept(ctx, call, next)
		}
		return next(ctx, call.Request) // the one that came meanwhile hooks no such method
	}
}

// pipe is the route of a method while there is no generation: its bytes pass. A generation that
// came before the answer may have filled the store before the runtime had done what was asked.
func (c *current) pipe(method string) cri.Interceptor {
	m := cri.MethodNamed(method)
	if m == nil || m.Effect == cri.Nothing {
		return nil
	}
	pass := c.passUpdate
	if pass == nil || m.Effect != cri.Updates || m.Object != abi.Container {
		if c.told && m.Effect != cri.Makes {
			return nil
		}
		pass = func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
			return next(ctx, call.Request)
		}
	}
	return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		resp, err := pass(ctx, call, next)
		if c.missed != nil && c.live.Load() != nil {
			c.missed(err == nil)
		}
		return resp, err
	}
}

func (c *current) acquire() *generation {
	for {
		g := c.live.Load()
		if g == nil || g.acquire() {
			return g
		}
	}
}
