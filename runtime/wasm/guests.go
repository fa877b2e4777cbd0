package wasm

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

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
	pool      *plugin.Pool[*guest]
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
	c := g.newCall(ctx, abi.ExportHook, ev, adj)
	c.meter.start = start
	code, err := g.enter(ctx, c, g.hook, uint64(ev.Hook()))
	if err != nil {
		p.pool.Discard(g)
		return err
	}
	p.pool.Put(g)
	return c.verdict(int32(code))
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
	if p.pool != nil {
		p.pool.Close()
	}
	return errors.Join(p.runtime.Close(ctx), p.code.Close(ctx), p.lease.Close(ctx))
}

// open makes an instance that is ready for events.
func (p *guests) open(ctx context.Context) (*guest, error) {
	g, err := p.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.configure(ctx); err != nil {
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
	g := &guest{id: p.id, log: p.log, config: p.config, allowance: p.allowance}
	if err := g.start(ctx, p.runtime, p.code); err != nil {
		return nil, wrap("instantiating", err)
	}
	g.hook = g.instance.ExportedFunction(abi.ExportHook)
	err := g.initialize(ctx)
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
	g.instance, err = r.InstantiateModule(context.WithValue(ctx, callKey{}, c), code, instance)
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
