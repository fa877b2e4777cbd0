package loader

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// modules are the plugins that are WebAssembly modules.
type modules struct {
	engine   *wasm.Engine
	features []abi.Feature    // of the node
	max      abi.Limits       // that a manifest may ask for
	observer observe.Observer // nil: the engine's
}

// open makes the plugin. With compiled, it is wasm.ErrNotCompiled if that would take the time of compiling.
func (k modules) open(ctx context.Context, d registry.Description, of Persistent, compiled bool) (plugin.Plugin, error) {
	module, err := d.ReadModule()
	if err != nil {
		return nil, TemporaryError{err}
	}
	options := k.options(d)
	options.KV, options.Metrics, options.Compiled = of.Values, of.Metrics, compiled
	return k.engine.Load(ctx, d.ID, module, options)
}

// options are a module's by its description.
func (k modules) options(d registry.Description) wasm.PluginOptions {
	return wasm.PluginOptions{
		Config: d.Config, Interpret: d.Interpret, Granted: d.Granted(), State: d.State, Features: k.features, Observer: k.observer,
		Set: d.Limits, Timeout: d.Timeout, TickTimeout: d.TickTimeout, Max: k.max,
	}
}

// configure is Loader's for a module. A guest's engine has its own way to stop it.
func (k modules) configure(m *Member, d registry.Description) {
	m.Metered = true
	m.Rights = d.Rights(m.Loaded.Manifest())
	m.Capabilities = m.Rights.Has()
	hold, _, _ := k.engine.Limits(k.options(d), m.Loaded.Manifest().Limits)
	m.Time = time.Duration(hold.TimeMS) * time.Millisecond
}
