package wasm

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// guests is one plugin: a compiled module and a bounded number of instances.
type guests struct {
	id        string
	log       *slog.Logger
	config    []byte
	allowance allowance // of one hook
	manifest  abi.Manifest
	lease     lease // of code
	runtime   wazero.Runtime
	code      wazero.CompiledModule
	memory    *memoryBudget
	share     turns  // of this plugin
	turns     turns  // of all
	pages     uint32 // of memory that an instance begins with
	limit     uint32 // of pages
	mutable   int    // how many mutable globals it has
	pool      *plugin.Pool[*guest]

	resets sync.WaitGroup // instances on their way back to the pool

	mu     sync.Mutex
	images []*image // that instances are reset to: one, unless they begin differently
}

var _ plugin.Plugin = (*guests)(nil)

// Manifest implements plugin.Plugin.
func (p *guests) Manifest() abi.Manifest { return p.manifest }

// Call implements plugin.Plugin. Its own time limit starts when it is called, so
// that waiting for an instance and making one count too.
func (p *guests) Call(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	start := time.Now()
	g, err := p.get(ctx)
	if err != nil {
		return err
	}
	g.ready()
	c := g.newCall(ctx, abi.ExportHook, ev, adj)
	c.meter.start = start
	code, err := p.run(ctx, g, c, ev.Hook())
	p.recycle(g)
	if err != nil {
		return err
	}
	return c.verdict(int32(code))
}

// run lets a guest serve a hook when few enough others do.
func (p *guests) run(ctx context.Context, g *guest, c *call, hook abi.Hook) (uint64, error) {
	if err := p.share.take(ctx, p.allowance.time); err != nil {
		return 0, err
	}
	defer p.share.end()
	if err := p.turns.take(ctx, p.allowance.time); err != nil {
		return 0, err
	}
	defer p.turns.end()
	return g.enter(ctx, c, g.hook, uint64(hook))
}

// smallMemory is reset as fast as a goroutine is woken to do it, in some
// microseconds.
const smallMemory = 256 << 10

// recycle makes an instance ready for the next event, or puts another in its
// place. The caller does not wait for this where it takes long. The next one may
// take the instance at once, and resets it if that has not been done.
func (p *guests) recycle(g *guest) {
	reusable := g.reusable()
	if reusable && g.instance.Memory().Size() <= smallMemory {
		g.reset()
		p.pool.Put(g)
		return
	}
	if reusable {
		g.soil()
		p.pool.PutLast(g)
	}
	p.resets.Add(1)
	go p.finish(g, reusable)
}

func (p *guests) finish(g *guest, reusable bool) {
	defer p.resets.Done()
	if reusable {
		g.ready()
		return
	}
	p.pool.Discard(g)
	p.warm()
}

// warm sees to it that an instance waits for the next event.
func (p *guests) warm() {
	ctx, cancel := within(context.Background(), startTimeout)
	defer cancel()
	g, err := p.pool.Get(ctx)
	switch {
	case err == nil:
		p.pool.Put(g)
	case !errors.Is(err, plugin.ErrPoolClosed):
		p.log.WarnContext(ctx, "plugin has no instance ready", "err", err)
	}
}

// get returns an instance. Only a caller that has to wait for it pays for a timer.
func (p *guests) get(ctx context.Context) (*guest, error) {
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	if g, ok := p.pool.TryGet(); ok {
		return g, nil
	}
	ctx, cancel := within(ctx, p.allowance.time)
	defer cancel()
	return p.pool.Get(ctx)
}

// Close implements plugin.Plugin.
func (p *guests) Close(ctx context.Context) error {
	p.resets.Wait()
	if p.pool != nil {
		p.pool.Close()
	}
	p.forget()
	return errors.Join(p.runtime.Close(ctx), p.code.Close(ctx), p.lease.Close(ctx))
}

// open makes an instance that is ready for events.
func (p *guests) open(ctx context.Context) (*guest, error) {
	g, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	err = g.configure(ctx)
	if err == nil {
		err = p.remember(g)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// instance is how every instance is made: without a name, so that there can be
// several, and without calling any function of its own.
var instance = wazero.NewModuleConfig().WithName("").WithStartFunctions()

// instantiate makes an instance that was built for this ABI, and runs no more of
// it than it must.
func (p *guests) instantiate(ctx context.Context) (*guest, error) {
	memory, err := newMemory(p.memory, int64(p.pages)<<16, int64(p.limit)<<16)
	if err != nil {
		return nil, wrap("instantiating", err)
	}
	g := &guest{memory: memory, id: p.id, log: p.log, config: p.config, allowance: p.allowance}
	if err := g.start(ctx, p.runtime, p.code); err != nil {
		memory.Free() // wazero does not
		return nil, wrap("instantiating", err)
	}
	g.hook = g.instance.ExportedFunction(abi.ExportHook)
	g.globals, err = globals(g.instance, p.mutable)
	if err == nil {
		err = g.initialize(ctx)
	}
	if err == nil {
		err = g.checkVersion(ctx)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// start makes the instance, which runs the module's start function if it has one.
func (g *guest) start(ctx context.Context, r wazero.Runtime, code wazero.CompiledModule) (err error) {
	c := g.newCall(ctx, "start", nil, nil)
	defer c.output.finish()
	defer recovered(&err)
	c.meter.begin()
	g.instance, err = r.InstantiateModule(experimental.WithMemoryAllocator(context.WithValue(ctx, callKey{}, c), g.memory), code, instance)
	if err != nil {
		return c.explain(ctx, err)
	}
	g.fuel, _ = g.instance.ExportedGlobal(fuel.Fuel).(api.MutableGlobal)
	g.frames, _ = g.instance.ExportedGlobal(fuel.Stack).(api.MutableGlobal)
	return nil
}

func (g *guest) checkVersion(ctx context.Context) error {
	v, err := g.version(ctx)
	if err != nil {
		return err
	}
	return checkVersion(v)
}
