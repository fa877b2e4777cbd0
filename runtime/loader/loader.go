// Package loader makes plugins of the descriptions of their files: modules, and hook servers, which are processes of their own.
// It says how a chain calls them, and what an operator is warned of. When a plugin is loaded, and which version is active, is
// for package slots.
package loader

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// Loader makes plugins of descriptions, and members of plugins. It does not change, and is safe for concurrent use.
type Loader struct {
	observer  observe.Observer
	noBreaker bool
	uncalled  abi.HookSet
	modules   modules
	servers   hookServers
}

// Options are what a Loader goes by.
type Options struct {
	Config    *config.Config
	Engine    *wasm.Engine
	Features  []abi.Feature // of the node
	Uncalled  abi.HookSet   // for which the mode has no calls
	NoBreaker bool          // plugins are called however often they fail
	Observer  observe.Observer
}

// Shadows returns a Loader of shadows of plugins.
func (l *Loader) Shadows() *Loader {
	of := *l
	of.observer = plugin.ShadowObserver(l.observer)
	of.modules.observer = of.observer // hook servers have no shadow
	return &of
}

// Shadow is how a chain calls a loaded shadow, by its description, for the observer of its outcomes.
func (l *Loader) Shadow(d registry.Description, have *Loaded, outcomes observe.Observer) *plugin.Shadow {
	return plugin.NewShadow(l.Member(d, have, nil).Member, d.Sample, outcomes)
}

// New returns a Loader. The caller closes the engine, after every plugin.
func New(o Options) *Loader {
	l := &Loader{
		observer: o.Observer, noBreaker: o.NoBreaker, uncalled: o.Uncalled,
		modules: modules{o.Engine, o.Features, o.Config.MaxLimits(), nil},
		servers: hookServers{observer: o.Observer, compat: o.Config.KoordCompat},
	}
	if key, value, ok := strings.Cut(o.Config.SkipLabel, "="); ok {
		l.servers.skip.Labels = map[string]string{key: "!" + value}
	}
	return l
}

// Static returns the plugin's manifest, as far as it can be told without loading the plugin: settings may be wrong, and code
// broken. The file of a hook server names all hooks that it is called in.
func (l *Loader) Static(d registry.Description) abi.Manifest {
	if d.IsHookServer() {
		return abi.Manifest{}
	}
	module, err := d.ReadAnyModule()
	if err != nil {
		return abi.Manifest{}
	}
	manifest, _ := wasm.StaticManifest(module)
	return manifest
}

// configure says how a chain calls the plugin, and what the plugin may do.
func (l *Loader) configure(m *Member, d registry.Description) {
	if d.IsHookServer() {
		l.servers.configure(m, d)
	} else {
		l.modules.configure(m, d)
	}
}

// Open makes a plugin, which the caller releases. With compiled, it is wasm.ErrNotCompiled if that would take the time of
// compiling. No file can end the process: a panic is that plugin's error.
func (l *Loader) Open(ctx context.Context, d registry.Description, k Persistent, compiled bool) (_ *Loaded, err error) {
	defer func() {
		if r := recover(); r != nil {
			l.observer.Observe(ctx, &observe.Panicked{During: "loading a plugin", Plugin: d.ID, Panic: fmt.Sprint(r), Stack: string(debug.Stack())})
			err = fmt.Errorf("loading plugin %s: panic: %v", d.ID, r)
		}
	}()
	have := new(Loaded)
	if !l.noBreaker {
		have.breaker = plugin.NewBreaker(l.observer, d.ID, nil)
	}
	if d.IsHookServer() {
		have.Plugin, err = l.servers.open(d, have.breaker)
	} else {
		have.Plugin, err = l.modules.open(ctx, d, k, compiled)
	}
	if err != nil {
		return nil, err
	}
	have.RefCounted = NewRefCounted(func() {
		ctx := context.Background()
		if err := have.Close(ctx); err != nil {
			l.observer.Observe(ctx, &observe.CloseFailed{Plugin: d.ID, Err: err})
			return
		}
		l.observer.Observe(ctx, &observe.PluginClosed{Plugin: d.ID})
	})
	return have, nil
}

// Member is how a chain calls a loaded plugin, by the description of its files. synchronized is what their generation
// knows of pods.
func (l *Loader) Member(d registry.Description, have *Loaded, synchronized *intercept.Synchronized) Member {
	manifest := have.Manifest()
	hooks := manifest.HookSet()
	if d.HooksNamed {
		hooks &= d.Hooks
	}
	m := Member{Loaded: have, DryRun: d.DryRun, Generation: d.Generation(), Synchronized: synchronized, Member: plugin.Member{
		ID: d.ID, Plugin: have, Policy: d.Policy, Hooks: hooks, Breaker: have.breaker, Bounds: plugin.BoundsOf(d.Match),
	}}
	if d.DryRun {
		m.Plugin = plugin.DryRun(have, d.ID, l.observer)
	}
	m.Match = matches(d, manifest, hooks)
	l.configure(&m, d)
	return m
}

// matches is what the operator left of what the plugin itself asks for.
func matches(d registry.Description, manifest abi.Manifest, hooks abi.HookSet) plugin.Matches {
	m := plugin.Matches{}.And(hooks, d.Match)
	for _, wanted := range manifest.Hooks {
		if hook, ok := abi.HookByName(wanted.Hook); ok {
			m = m.And(abi.HookSetOf(hook), wanted.Match)
		}
	}
	return m
}

// TemporaryError is a failure to load a plugin that may not occur again.
type TemporaryError struct{ Err error }

func (e TemporaryError) Error() string { return e.Err.Error() }
func (e TemporaryError) Unwrap() error { return e.Err }
