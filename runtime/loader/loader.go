// Package loader makes plugins of the descriptions of their files: modules, and hook servers, which are processes of their own.
// It says how a chain calls them, and what an operator is warned of. When a plugin is loaded, and which version is active, is
// for package slots.
package loader

import (
	"context"
	"fmt"
	"runtime/debug"

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
	modules   kind
	servers   kind
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
	k := l.modules.(modules) // hook servers have no shadow
	k.observer = of.observer
	of.modules = k
	return &of
}

// Shadow is how a chain calls a loaded shadow, by its description, for the observer of its outcomes.
func (l *Loader) Shadow(d registry.Description, have *Loaded, outcomes observe.Observer) *plugin.Shadow {
	return plugin.NewShadow(l.Member(d, have, nil).Member, d.Sample, outcomes)
}

// New returns a Loader. The caller closes the engine, after every plugin.
func New(o Options) *Loader {
	return &Loader{
		observer: o.Observer, noBreaker: o.NoBreaker, uncalled: o.Uncalled,
		modules: modules{o.Engine, o.Features, o.Config.MaxLimits(), nil}, servers: newHookServers(o.Config, o.Observer),
	}
}

// kind is what one kind of plugin has of its own.
type kind interface {
	// open makes the plugin. With compiled, it is wasm.ErrNotCompiled if that would
	// take the time of compiling.
	open(ctx context.Context, d registry.Description, k Persistent, breaker *plugin.Breaker, compiled bool) (plugin.Plugin, error)
	// static is the plugin's manifest, as far as it can be told without loading the
	// plugin: settings may be wrong, and code broken.
	static(d registry.Description) abi.Manifest
	// configure says how a chain calls the plugin, and what the plugin may do.
	configure(m *Member, d registry.Description)
	// warnings are for the operator.
	warnings(d registry.Description, manifest abi.Manifest) []observe.Event
	// name is the kind's.
	name() string
	// title says in a few words what the plugin is.
	title(manifest abi.Manifest) string
}

// Kind names the kind of a plugin.
func (l *Loader) Kind(d registry.Description) string { return l.kind(d).name() }

// Static returns the plugin's manifest, as far as it can be told without loading the plugin.
func (l *Loader) Static(d registry.Description) abi.Manifest { return l.kind(d).static(d) }

func (l *Loader) kind(d registry.Description) kind {
	if d.IsHookServer() {
		return l.servers
	}
	return l.modules
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
	if have.Plugin, err = l.kind(d).open(ctx, d, k, have.breaker, compiled); err != nil {
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
	l.kind(d).configure(&m, d)
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

// Error implements error.
func (e TemporaryError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e TemporaryError) Unwrap() error { return e.Err }
