package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// makingHooks are refused for a plugin under Fail whose own hooks are not known: those that
// create or change a container.
var makingHooks = abi.HookSetOf(abi.PreRunPodSandbox, abi.PreCreateContainer, abi.PreStartContainer, abi.PreUpdateContainerResources)

var errLoading = errors.New("it is being loaded")

// refusedHooks are the hooks that are refused while a plugin under Fail is not loaded: those
// that its file names, else those of its manifest. Only hooks before a call can refuse it.
func refusedHooks(d registry.Description, static abi.Manifest) abi.HookSet {
	hooks := makingHooks
	switch {
	case d.HooksNamed:
		hooks = d.Hooks
	case len(static.Hooks) > 0:
		hooks = static.HookSet()
	}
	var before abi.HookSet
	for _, info := range abi.Hooks {
		if info.Phase == abi.Before {
			before |= abi.HookSetOf(info.Hook)
		}
	}
	return hooks & before
}

// refusing is the place of a plugin under Fail that is not loaded.
func (l *loader) refusing(p *slot) member {
	d, static := p.awaited().description, p.awaited().static
	hooks := refusedHooks(d, static)
	m := member{loaded: p.refusal, refusing: true, Member: plugin.Member{
		ID: p.id, Plugin: p.refusal, Policy: plugin.Fail, Hooks: hooks, Match: matches(d, static, hooks),
	}}
	l.kind(d).place(&m, d)
	return m
}

// notLoaded stands for a plugin that is not loaded, and fails every call with the reason.
// The reason changes while it is in chains.
type notLoaded struct {
	id     string
	reason atomic.Pointer[error] // nil: it is being loaded
}

// Manifest implements plugin.Plugin.
func (a *notLoaded) Manifest() abi.Manifest { return abi.Manifest{Name: a.id} }

// Call implements plugin.Plugin.
func (a *notLoaded) Call(context.Context, *plugin.Budget, plugin.Event, *plugin.Adjustment) error {
	reason := errLoading
	if known := a.reason.Load(); known != nil {
		reason = *known
	}
	return fmt.Errorf("%w: %w", plugin.ErrNotLoaded, reason)
}

// Close implements plugin.Plugin.
func (a *notLoaded) Close(context.Context) error { return nil }
