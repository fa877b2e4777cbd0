package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/codecache"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/pool"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// Defaults and bounds of PluginOptions.
const (
	DefaultMemoryPages = 512 // 32 MiB
	DefaultFuel        = 20_000_000
	InterpretedFuel    = 5_000_000   // of a plugin that is interpreted
	DefaultTickFuel    = 100_000_000 // of Tick: some 80,000 for each of 1,200 containers
	MaxConfig          = 1 << 20

	defaultInstances = 4
	startTimeout     = 5 * time.Second // for all that a module runs before its first event
)

// PluginOptions are what an operator decides about one plugin. Zero values stand
// for the defaults.
type PluginOptions struct {
	Config    []byte // what the guest reads with config, at most MaxConfig bytes; not to be changed afterwards
	Instances int    // how many may exist at a time
	State     string // abi.StateNone or another state, if it is not to be the manifest's

	Set         abi.Limits    // the limits that the operator sets, but for time; those of Tick are by default those of all hooks
	Timeout     time.Duration // of one hook, from when it runs
	TickTimeout time.Duration // of Tick; Timeout if 0
	Max         abi.Limits    // the most that a manifest may ask for where the operator sets no limit; at least the default

	// Granted is what the plugin may have of what it declares; abi.DefaultGrant() if 0.
	Granted  abi.CapabilitySet
	KV       *plugin.KV      // that outlives the plugin; its own if nil
	Metrics  *plugin.Metrics // likewise
	Features []abi.Feature   // that the node has

	Interpret bool             // not to be compiled, as with Options.Interpret
	Compiled  bool             // to be loaded only if its compiled code is in the cache, else the error is ErrNotCompiled
	Observer  observe.Observer // the engine's if nil
}

func (o PluginOptions) withDefaults(e *Engine) PluginOptions {
	o.Instances = cmp.Or(o.Instances, defaultInstances)
	o.Granted = cmp.Or(o.Granted, abi.DefaultGrant())
	if o.KV == nil {
		o.KV = plugin.NewKV()
	}
	if o.Metrics == nil {
		o.Metrics = plugin.NewMetrics()
	}
	o.Interpret = o.Interpret || e.interpret
	o.Observer = cmp.Or(o.Observer, e.observer)
	return o
}

// ErrNotCompiled is the error of Load for a module that is yet to be compiled, if only
// compiled ones are to be loaded. An interpreted module is never compiled before.
var ErrNotCompiled = codecache.ErrNotCached

// LoadError is the failure of a plugin that was compiled.
type LoadError struct {
	Manifest abi.Manifest // what the plugin said of itself; without a name if it did not come to that
	Err      error
}

func (e *LoadError) Error() string { return e.Err.Error() }
func (e *LoadError) Unwrap() error { return e.Err }

// Temporary reports whether a Load that failed with err may succeed later, with the same
// module and options: what it met was the state of the node.
func Temporary(err error) bool {
	switch {
	case errors.Is(err, plugin.ErrBusy), errors.Is(err, errNoRoom), errors.As(err, new(*plugin.TimeError)),
		errors.As(err, new(*codecache.WallError)), errors.As(err, new(syscall.Errno)):
		return true
	}
	return false
}

// Load makes a plugin of a module: it checks and compiles it, reads its manifest,
// and lets one instance read its configuration. id is the plugin's name in logs.
// The caller closes the plugin, before the engine. Compiling does not heed ctx.
func (e *Engine) Load(ctx context.Context, id string, module []byte, o PluginOptions) (_ plugin.Plugin, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("loading plugin %s: %w", id, err)
		}
	}()
	o = o.withDefaults(e)
	if len(o.Config) > MaxConfig {
		return nil, fmt.Errorf("its config has %d bytes, the limit is %d", len(o.Config), MaxConfig)
	}
	m, err := preflight.Scan(module)
	if err != nil {
		return nil, err
	}
	var manifest *abi.Manifest // if a custom section has it
	if m.Manifest != nil {
		known, err := parseManifest(m.Manifest)
		if err != nil {
			return nil, err
		}
		manifest = &known
	}
	limits, err := o.negotiate(manifest)
	if err != nil {
		return nil, err
	}
	if problems := check(m, limits.manifest.Optional, limits.limit); len(problems) > 0 {
		return nil, errors.New(strings.Join(problems, "; "))
	}
	p, err := e.compile(ctx, id, m, o, limits)
	if err != nil {
		return nil, err
	}
	if err := p.prepare(ctx, o.Instances); err != nil {
		return nil, &LoadError{p.manifest, errors.Join(err, p.Close(ctx))}
	}
	return p, nil
}

// compile gives a module its code, and the host's functions that it imports.
func (e *Engine) compile(ctx context.Context, id string, m *preflight.Outline, o PluginOptions, t effectiveLimits) (*guests, error) {
	module, err := fuel.Instrument(m, fuel.Options{Unmetered: e.unmetered})
	if err != nil {
		return nil, err
	}
	closing, end := context.WithCancel(context.Background())
	p := &guests{
		id: id, effectiveLimits: t, static: m.Manifest != nil, options: o,
		memory: &memoryBudget{of: e.memory}, perPlugin: newLimiter(e.running.allButOne()), slow: e.slow, running: e.running,
		slowFor: slowFor,
		closing: closing.Done(), end: end, pages: m.Memory.Min, mutable: len(m.Mutable()),
	}
	_, most, _ := o.Limits(abi.Limits{})
	if p.compiledCode, err = e.codeOf(ctx, settings{Pages: pagesOf(most.Memory)}, o.Interpret, o.Compiled, module); err != nil {
		return nil, err
	}
	if err := instantiateHost(ctx, p.runtime, m); err != nil {
		return nil, errors.Join(err, p.compiledCode.Close(ctx))
	}
	return p, nil
}

// prepare fills the pool, with the first instance, from which the manifest is known, and
// with spare ones as far as there is memory for them.
func (p *guests) prepare(ctx context.Context, instances int) error {
	ctx, cancel := untilReady(ctx)
	defer cancel()
	first, err := p.open(ctx)
	if err != nil {
		return err
	}
	if p.keeps {
		instances = 1
	}
	p.pool = pool.New(instances, func(ctx context.Context) (*guest, error) {
		if g := first; g != nil {
			first = nil
			return g, nil
		}
		return p.open(ctx)
	}, (*guest).close)
	if !p.keeps && first.instance.Memory().Size() <= smallMemory {
		p.spares = min(maxSpares, instances-1)
	}
	var all []*guest
	for len(all) <= p.spares {
		g, err := p.pool.Get(ctx)
		if err != nil {
			break
		}
		all = append(all, g)
	}
	for _, g := range all {
		p.pool.Put(g)
	}
	return nil
}
