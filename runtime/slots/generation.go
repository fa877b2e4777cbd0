package slots

import (
	"context"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// generation is the plugins that calls use at one time, and their routes. It keeps its plugins,
// and ends when the daemon and the last call that uses it have let go.
type generation struct {
	*loader.RefCounted
	members []loader.Member
	route   cri.Router
	options intercept.Options // that its calls are intercepted with
}

// generations makes generations, and routes new calls by the one of the moment.
type generations struct {
	Options

	live       atomic.Pointer[generation] // nil: there is no plugin, or all are bypassed
	passUpdate cri.Interceptor            // passes an update of a container while there is no generation; may be nil
	missed     func(answered bool)        // called after a call that the generation of the moment did not see; may be nil
}

// generation makes the routes of these members, which the caller has, so that none has ended.
func (c *generations) generation(members []loader.Member) *generation {
	g := &generation{members: members, RefCounted: loader.NewRefCounted(func() {
		for _, m := range members {
			m.Loaded.Release()
			if m.LoadedShadow != nil {
				m.LoadedShadow.Release()
			}
		}
		c.Reconciler.Sync.Notify()
	})}
	g.options = c.options(members)
	g.options.Keep = func() func() { g.Acquire(); return g.Release } // called by a call, which keeps g
	chain := make([]plugin.Member, len(members))
	for i, m := range members {
		m.Loaded.Acquire()
		if m.LoadedShadow != nil {
			m.LoadedShadow.Acquire()
		}
		chain[i] = m.Member
		if m.Synchronizes() {
			chain[i] = m.Synchronized.Member(g.options, m.Member)
		}
	}
	g.options.Chain = g.options.NewChain(chain...)
	g.route = intercept.Router(g.options)
	return g
}

// options are what these members' calls are intercepted with, but for the chain. All plugins
// of one call together have at least the longest timeout of one of them.
func (c *generations) options(members []loader.Member) intercept.Options {
	o := intercept.Options{
		Enforcer: *c.Reconciler.Enforcer(), Images: c.Reconciler.Images,
		CallTime: intercept.DefaultCallTime, Lost: func() { c.Reconciler.Missed(false) },
		NewChain: func(chain ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(c.Observer, c.Reconciler.Cgroups.Version(), chain...)
		},
	}
	if len(members) > 0 {
		o.Generations = make(map[string]string, len(members))
		o.Cut = c.Reconciler.Cut.Load()
	}
	if c.Config.Mode != config.ModeDocker { // in which callers choose a container's namespace
		o.ExemptNamespaces = c.Config.Exempt
	}
	o.Around = c.Around
	var always []plugin.Member
	for _, m := range members {
		o.CallTime = max(o.CallTime, m.Time)
		o.Generations[m.ID] = m.Generation
		if m.Always {
			always = append(always, m.Member)
		}
		if m.Synchronizes() {
			o.Synchronized = append(o.Synchronized, m.Synchronized)
		}
	}
	if always != nil {
		o.AfterFailure = plugin.NewChain(c.Observer, 0, always...)
	}
	return o
}

// swap makes g the generation of every call from now on.
func (c *generations) swap(g *generation) {
	if old := c.live.Swap(g); old != nil {
		old.Release()
	}
}

// Route is a cri.Router: it asks the generation of the moment. Whether a call
// that was routed ever sends its request is the caller's choice, so a
// generation is kept only from there on, until the call has ended.
func (c *generations) Route(method string) cri.Interceptor {
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
		defer g.Release()
		if intercept := g.route(method); intercept != nil {
			return intercept(ctx, call, next)
		}
		return next(ctx, call.Request) // the one that came meanwhile hooks no such method
	}
}

// pipe is the route of a method while there is no generation: its bytes pass. A generation that
// came before the answer may have filled the store before the runtime had done what was asked.
func (c *generations) pipe(method string) cri.Interceptor {
	m := cri.MethodNamed(method)
	if m == nil || m.Effect == cri.Nothing {
		return nil
	}
	pass := c.passUpdate
	if pass == nil || m.Effect != cri.Updates || m.Object != abi.Container {
		if c.Reported && m.Effect != cri.Makes {
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

func (c *generations) acquire() *generation {
	for {
		g := c.live.Load()
		if g == nil || g.Acquire() {
			return g
		}
	}
}
