package loader

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

// RefusedHooks are the hooks that are refused while a plugin under Fail is not loaded: those
// that its file names, else those of its manifest. Only hooks before a call can refuse it.
func RefusedHooks(d registry.Description, static abi.Manifest) abi.HookSet {
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

// Refusing is how a chain refuses the calls of a plugin under Fail that is not loaded, by the description of what is to be
// loaded, and its manifest as far as it is known.
func (l *Loader) Refusing(r *Refusal, d registry.Description, static abi.Manifest) Member {
	hooks := RefusedHooks(d, static)
	m := Member{Loaded: r.loaded, Refusing: true, Member: plugin.Member{
		ID: r.id, Plugin: r.loaded, Policy: plugin.Fail, Hooks: hooks, Match: matches(d, static, hooks),
	}}
	l.configure(&m, d)
	return m
}

// Refusal stands for a plugin that is not loaded, and fails every call with the reason.
// The reason changes while it is in chains.
type Refusal struct {
	id     string
	loaded *Loaded               // itself, as a chain has it
	reason atomic.Pointer[error] // nil: it is being loaded
}

// NewRefusal returns the Refusal of a plugin that is being loaded.
func NewRefusal(id string) *Refusal {
	r := &Refusal{id: id}
	r.loaded = &Loaded{Plugin: r, RefCounted: NewRefCounted(func() {})}
	return r
}

// Set sets why the plugin is not loaded; nil: it is being loaded.
func (r *Refusal) Set(reason error) {
	if reason == nil {
		r.reason.Store(nil)
	} else {
		r.reason.Store(&reason)
	}
}

// Manifest implements plugin.Plugin.
func (r *Refusal) Manifest() abi.Manifest { return abi.Manifest{Name: r.id} }

// Call implements plugin.Plugin.
func (r *Refusal) Call(context.Context, *plugin.Budget, plugin.Event, *plugin.Adjustment) error {
	reason := errLoading
	if known := r.reason.Load(); known != nil {
		reason = *known
	}
	return fmt.Errorf("%w: %w", plugin.ErrNotLoaded, reason)
}

// Close implements plugin.Plugin.
func (r *Refusal) Close(context.Context) error { return nil }
