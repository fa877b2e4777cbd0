// Package loader makes plugins of the descriptions of their files: modules, and hook servers, which are processes of their own.
// It says how a chain calls them, and what an operator is warned of. When a plugin is loaded, and which version is active, is
// for package slots.
package loader

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// Loader makes plugins of descriptions, and members of plugins. It does not change, and is safe for concurrent use.
type Loader struct {
	options Options
	logger  observe.Observer // of modules; nil: the engine's
	skip    abi.Match        // rules out the pods about which no hook server is asked
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
	of.options.Observer = plugin.ShadowObserver(l.options.Observer)
	of.logger = of.options.Observer // hook servers have no shadow
	return &of
}

// Shadow is how a chain calls a loaded shadow, by its description, for the observer of its outcomes.
func (l *Loader) Shadow(d registry.Description, have *Loaded, outcomes observe.Observer) *plugin.Shadow {
	return plugin.NewShadow(l.Member(d, have, nil).Member, d.Sample, outcomes)
}

// New returns a Loader. The caller closes the engine, after every plugin.
func New(o Options) *Loader {
	l := &Loader{options: o}
	if key, value, ok := strings.Cut(o.Config.SkipLabel, "="); ok {
		l.skip.Labels = map[string]string{key: "!" + value}
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

// remoteTimeout is the time that one call of a hook server may take if its
// description does not say.
const remoteTimeout = 2 * time.Second

// configure says how a chain calls the plugin, and what the plugin may do. No hook server is called for a pod that keeps away
// from them, so that the pod in which a server itself runs can start while the server is down. koord-runtime-proxy told them
// of calls that failed, too.
func (l *Loader) configure(m *Member, d registry.Description) {
	if !d.IsHookServer() {
		manifest := m.Loaded.Manifest()
		m.Metered = true // a guest's engine has its own way to stop it
		m.Rights = d.Rights(manifest)
		m.Capabilities = m.Rights.Has()
		hold, _, _ := l.options.Engine.Limits(l.moduleOptions(d), manifest.Limits)
		m.Time = time.Duration(hold.TimeMS) * time.Millisecond
		return
	}
	m.Match = m.Match.And(m.Hooks, l.skip)
	m.Always = l.options.Config.KoordCompat
	m.Capabilities = abi.AllCapabilities // as before there were any
	m.KeepsPodLimits = true
	m.Timeout = cmp.Or(d.Timeout, remoteTimeout)
	m.Time = m.Timeout
}

// moduleOptions are a module's by its description.
func (l *Loader) moduleOptions(d registry.Description) wasm.PluginOptions {
	return wasm.PluginOptions{
		Config: d.Config, Interpret: d.Interpret, Granted: d.Granted(), State: d.State, Features: l.options.Features, Observer: l.logger,
		Set: d.Limits, Timeout: d.Timeout, TickTimeout: d.TickTimeout, Max: l.options.Config.MaxLimits(),
	}
}

// Open makes a plugin, which the caller releases. With compiled, it is wasm.ErrNotCompiled if that would take the time of
// compiling. No file can end the process: a panic is that plugin's error.
func (l *Loader) Open(ctx context.Context, d registry.Description, k Persistent, compiled bool) (_ *Loaded, err error) {
	observer := l.options.Observer
	defer func() {
		if r := recover(); r != nil {
			observer.Observe(ctx, &observe.Panicked{During: "loading a plugin", Plugin: d.ID, Panic: fmt.Sprint(r), Stack: string(debug.Stack())})
			err = fmt.Errorf("loading plugin %s: panic: %v", d.ID, r)
		}
	}()
	have := new(Loaded)
	if !l.options.NoBreaker {
		have.breaker = plugin.NewBreaker(observer, d.ID, nil)
	}
	if d.IsHookServer() {
		o := remote.Options{ID: d.ID, Endpoint: d.Endpoint, Hooks: d.Hooks, ClearUnset: l.options.Config.KoordCompat}
		if have.breaker != nil { // a server that is started anew has nothing to do with the faults of the one before
			o.Returned = func() { have.breaker.Reset(context.Background()) }
		}
		if have.Plugin, err = remote.New(o); err != nil {
			return nil, TemporaryError{err}
		}
	} else {
		module, err := d.ReadModule()
		if err != nil {
			return nil, TemporaryError{err}
		}
		options := l.moduleOptions(d)
		options.KV, options.Metrics, options.Compiled = k.Values, k.Metrics, compiled
		if have.Plugin, err = l.options.Engine.Load(ctx, d.ID, module, options); err != nil {
			return nil, err
		}
	}
	have.RefCounted = NewRefCounted(func() {
		ctx := context.Background()
		if err := have.Close(ctx); err != nil {
			observer.Observe(ctx, &observe.CloseFailed{Plugin: d.ID, Err: err})
			return
		}
		observer.Observe(ctx, &observe.PluginClosed{Plugin: d.ID})
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
	m := Member{Loaded: have, Generation: d.Generation(), Synchronized: synchronized, Member: plugin.Member{
		ID: d.ID, Plugin: have, Policy: d.Policy, Hooks: hooks, Breaker: have.breaker, Bounds: plugin.BoundsOf(d.Match), DryRun: d.DryRun,
	}}
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
