package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// Defaults and bounds of PluginOptions.
const (
	DefaultMemoryPages = 512 // 32 MiB
	DefaultFuel        = 20_000_000
	DefaultTimeout     = 500 * time.Millisecond
	DefaultInstances   = 4
	MaxConfig          = 1 << 20
	MaxModule          = preflight.MaxModule // bytes of a module

	// startTimeout is for all that a module runs before its first event, and
	// startFuel for each function of it.
	startTimeout = 5 * time.Second
	startFuel    = 500_000_000
)

// PluginOptions are what an operator decides about one plugin. Zero values stand
// for the defaults.
type PluginOptions struct {
	Config      []byte        // what the guest reads with config, at most MaxConfig bytes; not to be changed afterwards
	MemoryPages uint32        // of 64 KiB, of one instance
	Fuel        int64         // of one hook: units of about an instruction each, see package fuel
	Timeout     time.Duration // of one hook, waiting for a free instance included
	Instances   int           // how many may exist at a time
	Interpret   bool          // not to be compiled, as with Options.Interpret
	Log         *slog.Logger  // the engine's if nil
}

func (o PluginOptions) withDefaults(e *Engine) PluginOptions {
	if o.MemoryPages == 0 {
		o.MemoryPages = DefaultMemoryPages
	}
	if o.Fuel == 0 {
		o.Fuel = DefaultFuel
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Instances == 0 {
		o.Instances = DefaultInstances
	}
	if o.Log == nil {
		o.Log = e.log
	}
	return o
}

// Load makes a plugin of a module: it checks and compiles it, reads its manifest,
// and lets one instance read its configuration. id is the plugin's name in logs.
// The caller closes the plugin, before the engine. Compiling does not heed ctx.
func (e *Engine) Load(ctx context.Context, id string, module []byte, o PluginOptions) (plugin.Plugin, error) {
	p, err := e.load(ctx, id, module, o.withDefaults(e))
	if err != nil {
		return nil, fmt.Errorf("loading plugin %s: %w", id, err)
	}
	return p, nil
}

func (e *Engine) load(ctx context.Context, id string, binary []byte, o PluginOptions) (*guests, error) {
	if len(o.Config) > MaxConfig {
		return nil, fmt.Errorf("its config has %d bytes, the limit is %d", len(o.Config), MaxConfig)
	}
	m, err := preflight.Scan(binary)
	if err != nil {
		return nil, err
	}
	if problems := check(m, o.MemoryPages); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "; "))
	}
	p, err := e.compile(ctx, id, m, o)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, m, o.Instances); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// compile gives a module its runtime.
func (e *Engine) compile(ctx context.Context, id string, m *preflight.Outline, o PluginOptions) (_ *guests, err error) {
	code, err := e.limiter.rewrite(m.Code)
	if err != nil {
		return nil, err
	}
	mutable := mutableGlobals(m)
	code = exportGlobals(code, mutable)
	interpret, how := e.interpret || o.Interpret, settings{Pages: o.MemoryPages}
	p := &guests{
		id: id, log: o.Log.With("plugin", id), config: o.Config,
		memory: e.memory, share: make(turns, e.running.share()), turns: e.running, pages: m.Memory.Min, limit: o.MemoryPages, mutable: len(mutable), allowance: allowance{fuel: o.Fuel, time: o.Timeout},
	}
	if p.lease, err = e.codeOf(ctx, how, interpret, code); err != nil {
		return nil, err
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, runtimeConfig(p.lease.cache, how, interpret))
	defer func() {
		if err != nil {
			err = errors.Join(err, p.runtime.Close(ctx), p.lease.Close(ctx))
		}
	}()
	if err := instantiateHost(ctx, p.runtime, m); err != nil {
		return nil, err
	}
	if err := e.limiter.link(ctx, p.runtime); err != nil {
		return nil, err
	}
	select {
	case e.compiling <- struct{}{}:
		defer func() { <-e.compiling }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another module to be compiled: %w", context.Cause(ctx))
	}
	defer recovered(&err)
	if p.code, err = p.runtime.CompileModule(ctx, code); err != nil {
		return nil, fmt.Errorf("compiling: %s", printable(err.Error(), maxReason))
	}
	return p, nil
}

// prepare reads the manifest and fills the pool with a first instance.
func (p *guests) prepare(ctx context.Context, m *preflight.Outline, instances int) (err error) {
	ctx, cancel := within(ctx, startTimeout)
	defer cancel()
	if m.Manifest != nil {
		if p.manifest, err = parseManifest(m.Manifest); err != nil {
			return err
		}
	}
	p.pool = plugin.NewPool(instances, p.open, (*guest).close)
	g, err := p.pool.Get(ctx)
	if err != nil {
		return err
	}
	if m.Manifest == nil {
		p.manifest, err = g.readManifest(ctx)
	}
	if err != nil {
		p.pool.Discard(g)
		return err
	}
	p.recycle(g) // the manifest was the guest's own work
	return nil
}

func (g *guest) readManifest(ctx context.Context) (abi.Manifest, error) {
	b, err := g.manifest(ctx)
	if err != nil {
		return abi.Manifest{}, err
	}
	return parseManifest(b)
}
