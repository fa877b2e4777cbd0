package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// remoteTimeout is the time that one call of a hook server may take if its
// description does not say.
const remoteTimeout = 2 * time.Second

// refusedHooks are those that a plugin refuses while it cannot be loaded and
// must not be ignored, if its description names none.
var refusedHooks = abi.HookSetOf(abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStartContainer, abi.PreUpdateContainerResources)

// loader turns descriptions into plugins, and keeps those whose description
// did not change. It is for one goroutine.
type loader struct {
	log       *slog.Logger
	engine    *wasm.Engine
	noBreaker bool
	loaded    map[string]*loaded // by id
}

func newLoader(log *slog.Logger, engine *wasm.Engine, noBreaker bool) *loader {
	return &loader{log: log, engine: engine, noBreaker: noBreaker, loaded: map[string]*loaded{}}
}

// member is a place in the chain and the shared plugin that fills it.
type member struct {
	plugin.Member
	loaded *loaded
	time   time.Duration // that one call of it may take, whoever ends it
}

// absent reports whether the member stands for a plugin that is not there.
func (m member) absent() bool { return m.loaded.source == "" }

// pending returns the members of descriptions without loading anything: what
// is loaded already stays, and what must not be ignored refuses its hooks.
func (l *loader) pending(descriptions []registry.Description) []member {
	var members []member
	for _, d := range descriptions {
		switch have := l.loaded[d.ID]; {
		case have != nil:
			members = append(members, newMember(d, have))
		case d.Policy == plugin.Fail:
			members = append(members, l.refusing(d, errors.New("it is being loaded")))
		}
	}
	return members
}

// load loads what is new or changed, drops what is gone, and returns the
// members of the chain. A plugin that does not load leaves the one before it in
// place; the errors say why.
func (l *loader) load(ctx context.Context, descriptions []registry.Description) (members []member, errs []error) {
	l.drop(descriptions)
	for _, d := range descriptions {
		have, err := l.get(ctx, d)
		if err != nil && d.Problem == nil { // the registry has said what is wrong with its files
			errs = append(errs, err)
		}
		switch {
		case have != nil:
			members = append(members, newMember(d, have))
		case d.Policy == plugin.Fail:
			members = append(members, l.refusing(d, err))
		}
	}
	return members, errs
}

// get returns the plugin of a description: the one there is if it was made from
// the same, else a new one, else, with the error, the one there is.
func (l *loader) get(ctx context.Context, d registry.Description) (*loaded, error) {
	have := l.loaded[d.ID]
	if have != nil && (d.Problem != nil || have.source == source(d)) {
		return have, d.Problem
	}
	start := time.Now()
	p, err := l.open(ctx, d)
	if err != nil {
		return have, err
	}
	if have != nil {
		have.release()
	}
	l.loaded[d.ID] = newLoaded(l.log, d.ID, source(d), p)
	if !l.noBreaker {
		l.loaded[d.ID].breaker = plugin.NewBreaker(l.log, d.ID, nil)
	}
	l.log.InfoContext(ctx, "plugin loaded", "plugin", d.ID, "name", p.Manifest().Name, "version", p.Manifest().Version,
		"hooks", p.Manifest().Hooks, "replaced", have != nil, "took", time.Since(start))
	return l.loaded[d.ID], nil
}

// open makes a plugin. No file can end the process: a panic is that plugin's error.
func (l *loader) open(ctx context.Context, d registry.Description) (_ plugin.Plugin, err error) {
	defer func() {
		if r := recover(); r != nil {
			l.log.ErrorContext(ctx, "loading a plugin panicked", "plugin", d.ID, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("loading plugin %s: panic: %v", d.ID, r)
		}
	}()
	if d.Problem != nil {
		return nil, d.Problem
	}
	if d.Endpoint != "" {
		return remote.New(remote.Options{ID: d.ID, Endpoint: d.Endpoint, Hooks: d.Hooks, Log: l.log})
	}
	module, err := d.ReadModule()
	if err != nil {
		return nil, err
	}
	return l.engine.Load(ctx, d.ID, module, wasm.PluginOptions{Config: d.Config, Timeout: d.Timeout, Interpret: d.Interpret})
}

// drop lets go of what no description names any more.
func (l *loader) drop(descriptions []registry.Description) {
	named := map[string]bool{}
	for _, d := range descriptions {
		named[d.ID] = true
	}
	for id, have := range l.loaded {
		if !named[id] {
			delete(l.loaded, id)
			have.release()
			l.log.Info("plugin removed", "plugin", id)
		}
	}
}

// close lets go of everything.
func (l *loader) close() {
	for _, have := range l.loaded {
		have.release()
	}
	clear(l.loaded)
}

// source is what a loaded plugin depends on: descriptions with the same source
// share it.
func source(d registry.Description) string { return d.Source() + " " + d.Timeout.String() }

func newMember(d registry.Description, have *loaded) member {
	hooks := hooksOf(have.Manifest())
	if d.HooksNamed {
		hooks &= d.Hooks
	}
	return member{loaded: have, time: hookTime(d), Member: plugin.Member{
		ID: d.ID, Plugin: have, Policy: d.Policy, Timeout: chainTimeout(d), Hooks: hooks, Breaker: have.breaker,
	}}
}

// chainTimeout is the time that the chain gives a plugin. A guest's is 0: its
// engine has its own way to stop it.
func chainTimeout(d registry.Description) time.Duration {
	switch {
	case d.Endpoint == "":
		return 0
	case d.Timeout > 0:
		return d.Timeout
	}
	return remoteTimeout
}

// hookTime is the time that one call of a plugin may take.
func hookTime(d registry.Description) time.Duration {
	if d.Endpoint == "" && d.Timeout == 0 {
		return wasm.DefaultTimeout
	}
	return max(d.Timeout, chainTimeout(d))
}

// callTime is what all plugins of one call may take together: never less than
// what one of them was given.
func callTime(members []member) time.Duration {
	longest := intercept.DefaultCallTime
	for _, m := range members {
		longest = max(longest, m.time)
	}
	return longest
}

func hooksOf(m abi.Manifest) (set abi.HookSet) {
	for _, name := range m.Hooks {
		if h, ok := abi.HookByName(name); ok {
			set |= abi.HookSetOf(h)
		}
	}
	return set
}

// refusing is the place of a plugin that must not be ignored and is not there.
func (l *loader) refusing(d registry.Description, reason error) member {
	hooks := refusedHooks
	if d.HooksNamed {
		hooks = d.Hooks
	}
	absent := newLoaded(l.log, d.ID, "", notLoaded{manifest: abi.Manifest{Name: d.ID, Hooks: hooks.Names()}, reason: reason})
	return member{loaded: absent, Member: plugin.Member{ID: d.ID, Plugin: absent, Policy: d.Policy, Hooks: hooks}}
}

// notLoaded is a plugin that fails every call with the reason why it is not there.
type notLoaded struct {
	manifest abi.Manifest
	reason   error
}

func (p notLoaded) Manifest() abi.Manifest { return p.manifest }

func (p notLoaded) Call(context.Context, plugin.Event, *plugin.Adjustment) error {
	return fmt.Errorf("%w: %w", plugin.ErrNotLoaded, p.reason)
}

func (p notLoaded) Close(context.Context) error { return nil }
