package wasm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/pool"
)

// guests is one plugin: a compiled module and a bounded number of instances.
type guests struct {
	id      string
	options PluginOptions
	effectiveLimits
	plugin.Watchable
	static bool // the manifest is in a custom section
	memory *memoryBudget
	compiledCode

	perPlugin, slow, running limiter // of this plugin's guests, those of all slow plugins, and all

	lastSlow atomic.Pointer[time.Time] // when a slow call of it ended; nil if none was
	slowFor  time.Duration             // the constant, but in tests

	instances atomic.Int64 // that there are, in use or not

	pages   uint32 // of memory that an instance begins with
	mutable int    // how many mutable globals it has
	pool    *pool.Pool[*guest]

	resets  sync.WaitGroup  // instances on their way back to the pool
	closing <-chan struct{} // closed when no instance is to be made any more
	end     func()          // closes it
	spares  int             // instances beside the one that is ready

	mu     sync.Mutex
	images []*image // that instances are reset to: one, unless they begin differently
	dirty  []*guest // that are to be reset
}

var (
	_ plugin.Plugin  = (*guests)(nil)
	_ plugin.Watched = (*guests)(nil)
)

func (p *guests) Manifest() abi.Manifest { return p.manifest }

// Call implements plugin.Plugin. The guest's own time begins when it runs: waiting for an
// instance, or for other guests to end, is bounded by ctx.
func (p *guests) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	g, err := p.get(ctx, budget)
	if err != nil {
		return err
	}
	g.reset()
	err = p.run(ctx, budget, g, ev, adj)
	g.call, g.frame.stack, g.ctx = call{}, nil, callContext{} // hold nothing of a request until the next
	p.recycle(g)
	return err
}

// run lets a guest serve a hook when few enough others do.
func (p *guests) run(ctx context.Context, budget *plugin.Budget, g *guest, ev plugin.Event, adj *plugin.Adjustment) error {
	s, err := p.acquire(ctx, budget)
	if err != nil {
		return err
	}
	defer s.release()
	c := g.newCall(ctx, abi.ExportHook, budget, ev, adj)
	c.watch = p.Begin(ev, adj)
	code, err := g.enter(ctx, c, g.hook, uint64(ev.Hook()))
	if err == nil {
		err = c.verdict(int32(code))
	}
	_, some := plugin.Interrupted(ev, err) // what it keeps of them counts, as what it has set
	if c.kv != nil && (err == nil || some) {
		err = errors.Join(err, c.kv.Commit())
	}
	if c.watch != nil {
		c.watch.End(err)
	}
	return err
}

// Instances of at most smallMemory are reset as fast as a goroutine is woken to do it, in
// some microseconds. So there are a few to spare, and a goroutine is woken for all that
// served an event since.
const (
	smallMemory = 256 << 10
	maxSpares   = 3
)

// recycle makes an instance ready for the next event, or puts another in its
// place. The caller does not wait for this. The next one may take the instance at
// once, and resets it if that has not been done.
func (p *guests) recycle(g *guest) {
	switch {
	case p.keeps && !g.trapped:
		p.pool.Put(g)
	case p.keeps || !g.reusable():
		p.resets.Go(func() {
			p.pool.Discard(g)
			p.ensureIdle()
		})
	default:
		g.mu.Lock()
		g.dirty = true
		g.mu.Unlock()
		p.pool.PutLast(g)
		p.mu.Lock()
		p.dirty = append(p.dirty, g)
		enough := len(p.dirty) == max(1, p.spares)
		p.mu.Unlock()
		if enough {
			p.resets.Go(p.clean)
		}
	}
}

// clean resets all that is to be reset. An instance that has been taken meanwhile was
// reset by who took it.
func (p *guests) clean() {
	p.mu.Lock()
	all := slices.Clone(p.dirty)
	p.dirty = p.dirty[:0]
	p.mu.Unlock()
	for _, g := range all {
		g.reset()
		p.pool.Promote(g)
	}
}

// ensureIdle sees to it that an instance waits for the next event, unless none will come.
func (p *guests) ensureIdle() {
	ctx, cancel := untilReady(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	g, err := p.pool.Get(ctx)
	switch {
	case err == nil:
		p.pool.Put(g)
	case !errors.Is(err, context.Canceled):
		p.options.Observer.Observe(ctx, &observe.InstanceMissing{Plugin: p.id, Err: err})
	}
}

// get returns an instance, after waiting for one or making one where it must. Only then
// does the caller pay for a timer.
func (p *guests) get(ctx context.Context, budget *plugin.Budget) (*guest, error) {
	if plugin.Gone(ctx) {
		return nil, stopped(ctx)
	}
	if g, ok := p.pool.TryGet(); ok {
		return g, nil
	}
	defer budget.Wait()()
	ctx, end := budget.QueueContext(ctx)
	defer end()
	ctx, cancel := untilReady(ctx)
	defer cancel()
	return p.pool.Get(ctx)
}

// Close implements plugin.Plugin. It does not wait for guests: a call may be what closes a plugin that was replaced.
func (p *guests) Close(ctx context.Context) error {
	p.end()
	p.Watchable.Close()
	p.resets.Wait()
	if p.pool != nil {
		p.pool.Close()
	}
	return p.compiledCode.Close(ctx)
}

// open makes an instance and runs all that it runs before its first event: what initializes
// it, wp_manifest unless a custom section has the manifest, and wp_configure, by which it may
// refuse its configuration. All instances run the same, so that all begin alike. Each counts as
// running until then: a guest that takes long there and lets its instances be replaced after
// each call would run on all processors otherwise.
func (p *guests) open(ctx context.Context) (_ *guest, err error) {
	s, err := p.acquire(ctx, nil) // get counts the wait
	if err != nil {
		return nil, err
	}
	defer s.release()
	g, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if _, err = g.initialize(ctx); err != nil {
		return nil, err
	}
	if !p.static {
		if err = p.learn(ctx, g); err != nil {
			return nil, err
		}
	}
	code, err := g.before(ctx, abi.ExportConfigure)
	if err == nil && int32(code) != 0 {
		err = wrap(abi.ExportConfigure, g.call.verdict(int32(code)))
	}
	if err == nil && !p.keeps {
		err = p.remember(g)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// instance is how every instance is made: without a name, so that there can be
// several, and without calling any function of its own.
var instance = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// instantiate makes an instance. No code of the module runs: what would is an export (package
// fuel).
func (p *guests) instantiate(ctx context.Context) (_ *guest, err error) {
	memory, err := newMemory(p.memory, int64(p.pages)<<16, int64(p.limit)<<16)
	if err != nil {
		return nil, wrap("instantiating", err)
	}
	defer func() {
		if err != nil {
			memory.Free() // wazero does not
			err = wrap("instantiating", err)
		}
	}()
	defer recovered(&err)
	m, err := p.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), p.code, instance)
	if err != nil {
		return nil, errors.New(plugin.Printable(err.Error(), maxReason))
	}
	g := &guest{
		of: p, instance: m, memory: memory, hook: m.ExportedFunction(abi.ExportHook), frame: frame{memory: m.Memory()},
	}
	g.fuel, _ = m.ExportedGlobal(fuel.Fuel).(api.MutableGlobal)
	g.frames, _ = m.ExportedGlobal(fuel.Stack).(api.MutableGlobal)
	for n := range p.mutable {
		g.globals = append(g.globals, m.ExportedGlobal(fuel.Global(n)).(api.MutableGlobal))
	}
	p.instances.Add(1)
	return g, nil
}
