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
	koord     koord
	noBreaker bool
	features  []abi.Feature      // of the node
	loaded    map[string]*loaded // by id
	kept      map[string]kept    // by id
	said      map[string]string  // the notes that the log has, by id
}

func newLoader(log *slog.Logger, engine *wasm.Engine, k koord, noBreaker bool) *loader {
	return &loader{log: log, engine: engine, koord: k, noBreaker: noBreaker, loaded: map[string]*loaded{}, kept: map[string]kept{}, said: map[string]string{}}
}

// member is a place in the chain and the shared plugin that fills it.
type member struct {
	plugin.Member
	loaded      *loaded
	description registry.Description
	time        time.Duration // that one call of it may take, whoever ends it

	hookServer bool
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
			members = append(members, l.member(d, have))
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
		if err == nil {
			l.say(ctx, d, have.Manifest())
		}
		switch {
		case have != nil:
			members = append(members, l.member(d, have))
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
	var breaker *plugin.Breaker
	if !l.noBreaker {
		breaker = plugin.NewBreaker(l.log, d.ID, nil)
	}
	p, err := l.open(ctx, d, breaker)
	if err != nil {
		return have, err
	}
	manifest := p.Manifest()
	l.replace(d, p, have, breaker)
	l.log.InfoContext(ctx, "plugin loaded", "plugin", d.ID, "name", manifest.Name, "version", manifest.Version,
		"hooks", manifest.HookSet().Names(), "replaced", have != nil, "took", time.Since(start))
	return l.loaded[d.ID], nil
}

// replace puts p into the place of have, which may be nil. A plugin that is to be
// synchronized first does not end the one before it yet.
func (l *loader) replace(d registry.Description, p plugin.Plugin, have *loaded, breaker *plugin.Breaker) {
	manifest := p.Manifest()
	young := newLoaded(l.log, d.ID, source(d), p)
	young.breaker = breaker
	l.loaded[d.ID] = young
	delete(l.said, d.ID)
	if manifest.HookSet().Has(abi.Synchronize) {
		young.synchronized, young.before, young.fresh = intercept.NewSynchronized(), have, true
	} else if have != nil {
		have.release()
	}
}

// open makes a plugin. No file can end the process: a panic is that plugin's error.
func (l *loader) open(ctx context.Context, d registry.Description, breaker *plugin.Breaker) (_ plugin.Plugin, err error) {
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
		return remote.New(l.koord.options(d, breaker, l.log))
	}
	module, err := d.ReadModule()
	if err != nil {
		return nil, err
	}
	options, err := l.moduleOptions(d)
	if err != nil {
		return nil, err
	}
	return l.engine.Load(ctx, d.ID, module, options)
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
			delete(l.said, id)
			have.release()
			l.log.Info("plugin removed", "plugin", id)
		}
	}
	for id := range l.kept { // also of what never loaded
		if !named[id] {
			delete(l.kept, id)
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

func (l *loader) member(d registry.Description, have *loaded) member {
	manifest := have.Manifest()
	hooks := manifest.HookSet()
	if d.HooksNamed {
		hooks &= d.Hooks
	}
	return member{loaded: have, description: d, time: hookTime(d), hookServer: d.IsHookServer(), Member: plugin.Member{
		ID: d.ID, Plugin: l.tried(d, have), Policy: d.Policy, Timeout: chainTimeout(d), Metered: d.Endpoint == "", Hooks: hooks, Breaker: have.breaker,
		Capabilities: capabilities(d, manifest), Match: manifestMatch(l.koord.match(d, hooks), manifest),
	}}
}

// manifestMatch narrows what the operator left by what the plugin itself asks for.
func manifestMatch(m plugin.Matches, manifest abi.Manifest) plugin.Matches {
	for _, wanted := range manifest.Hooks {
		if hook, ok := abi.HookByName(wanted.Hook); ok {
			m = m.And(abi.HookSetOf(hook), wanted.Match)
		}
	}
	return m
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

// refusing is the place of a plugin that must not be ignored and is not there.
func (l *loader) refusing(d registry.Description, reason error) member {
	hooks := refusedHooks
	if d.HooksNamed {
		hooks = d.Hooks
	}
	absent := newLoaded(l.log, d.ID, "", notLoaded{manifest: abi.Manifest{Name: d.ID, Hooks: abi.ManifestHooks(hooks)}, reason: reason})
	return member{loaded: absent, Member: plugin.Member{ID: d.ID, Plugin: absent, Policy: d.Policy, Hooks: hooks, Match: l.koord.match(d, hooks)}}
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

// tried is the plugin as it goes into a chain: itself, or such that it changes
// nothing.
func (l *loader) tried(d registry.Description, have *loaded) plugin.Plugin {
	if d.DryRun {
		return plugin.DryRun(have, d.ID, l.log)
	}
	return have
}
