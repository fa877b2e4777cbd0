package daemon

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// loader makes plugins of descriptions, and members of plugins. It does not change, and
// is safe for concurrent use.
type loader struct {
	observer  observe.Observer
	noBreaker bool        // plugins are called however often they fail
	uncalled  abi.HookSet // the mode has no calls for them
	modules   kind
	servers   kind
}

// kind is what one kind of plugin has of its own.
type kind interface {
	// open makes the plugin. With compiled, it is wasm.ErrNotCompiled if that would
	// take the time of compiling.
	open(ctx context.Context, d registry.Description, k persistent, breaker *plugin.Breaker, compiled bool) (plugin.Plugin, error)
	// static is the plugin's manifest, as far as it can be told without loading the
	// plugin: settings may be wrong, and code broken.
	static(d registry.Description) abi.Manifest
	// place says how a chain calls the plugin, and what the plugin may do.
	place(m *member, d registry.Description)
	// warnings are for the operator.
	warnings(d registry.Description, manifest abi.Manifest) []observe.Event
	// name is the kind's.
	name() string
	// title says in a few words what the plugin is.
	title(manifest abi.Manifest) string
}

func (l *loader) kind(d registry.Description) kind {
	if d.IsHookServer() {
		return l.servers
	}
	return l.modules
}

// open makes a plugin. No file can end the process: a panic is that plugin's error.
func (l *loader) open(ctx context.Context, d registry.Description, k persistent, compiled bool) (_ *loaded, err error) {
	defer func() {
		if r := recover(); r != nil {
			l.observer.Observe(ctx, &observe.Panicked{During: "loading a plugin", Plugin: d.ID, Panic: fmt.Sprint(r), Stack: string(debug.Stack())})
			err = fmt.Errorf("loading plugin %s: panic: %v", d.ID, r)
		}
	}()
	have := new(loaded)
	if !l.noBreaker {
		have.breaker = plugin.NewBreaker(l.observer, d.ID, nil)
	}
	if have.Plugin, err = l.kind(d).open(ctx, d, k, have.breaker, compiled); err != nil {
		return nil, err
	}
	have.refCounted = newRefCounted(func() {
		ctx := context.Background()
		if err := have.Close(ctx); err != nil {
			l.observer.Observe(ctx, &observe.CloseFailed{Plugin: d.ID, Err: err})
			return
		}
		l.observer.Observe(ctx, &observe.PluginClosed{Plugin: d.ID})
	})
	return have, nil
}

// member is a place in the chain and the shared plugin that fills it.
type member struct {
	plugin.Member
	loaded   *loaded
	refusing bool // the plugin is not loaded, and its hooks are refused
	dryRun   bool // its changes are logged and not made
	always   bool // it is called after calls that failed, too

	generation   string                  // of its files
	synchronized *intercept.Synchronized // what this generation knows; nil of one that refuses
	time         time.Duration           // limit of one call of it, whoever enforces it
}

// equal reports whether calls notice no difference between two members.
func (m member) equal(o member) bool {
	switch {
	case m.loaded != o.loaded, m.generation != o.generation, m.dryRun != o.dryRun, m.time != o.time,
		m.Policy != o.Policy, m.Timeout != o.Timeout, m.Hooks != o.Hooks, m.Capabilities != o.Capabilities:
		return false
	}
	return reflect.DeepEqual(m.Match, o.Match)
}

// place returns the slot's member. There is none if the plugin is not loaded and calls pass
// without it.
func (l *loader) place(p *slot) (m member, ok bool) {
	switch {
	case p.active != nil:
		return l.member(p.active), true
	case p.refuses():
		return l.refusing(p), true
	}
	return m, false
}

// member is the place of a version.
func (l *loader) member(v *version) member {
	d, manifest := v.description, v.loaded.Manifest()
	hooks := manifest.HookSet()
	if d.HooksNamed {
		hooks &= d.Hooks
	}
	m := member{loaded: v.loaded, dryRun: d.DryRun, generation: d.Generation(), synchronized: v.synchronized, Member: plugin.Member{
		ID: d.ID, Plugin: v.loaded, Policy: d.Policy, Hooks: hooks, Breaker: v.loaded.breaker, Bounds: plugin.BoundsOf(d.Match),
	}}
	if d.DryRun {
		m.Plugin = plugin.DryRun(v.loaded, d.ID, l.observer)
	}
	m.Match = matches(d, manifest, hooks)
	l.kind(d).place(&m, d)
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
