package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Registration is what a plugin says of itself: its name, and which function
// handles which hook. The proxy calls a plugin only for the hooks it registered.
type Registration struct {
	manifest  abi.Manifest
	handlers  []handler
	configure func(config string) error
}

type handler struct {
	hook  abi.Hook
	run   func() error
	match []Match // at most one
}

// plugin is the one that this module is.
var plugin Registration

// Plugin names the plugin that this module is. A module calls it once, in an
// init function: the main function of a plugin never runs.
func Plugin(name, version string) *Registration {
	if plugin.manifest.Name != "" {
		Abort("sdk: a module is one plugin, and this one is called " + plugin.manifest.Name + " and " + name)
	}
	plugin.manifest.Name, plugin.manifest.Version = name, version
	return &plugin
}

// Describe adds a line of text for people who look at the plugin.
func (r *Registration) Describe(text string) *Registration {
	r.manifest.Description = text
	return r
}

// License adds the plugin's licence as an SPDX expression.
func (r *Registration) License(spdx string) *Registration {
	r.manifest.License = spdx
	return r
}

// Needs declares capabilities. What a plugin does not declare is denied to it, and
// of what it declares, all that the operator does not grant.
func (r *Registration) Needs(capabilities ...Capability) *Registration {
	for _, c := range capabilities {
		r.manifest.Capabilities = append(r.manifest.Capabilities, string(c))
	}
	return r
}

// Limits are what one call needs at most, see [Registration.Limits]. What is 0 is
// the proxy's default.
type Limits = abi.Limits

// Limits asks for limits other than the proxy's defaults, higher or lower. A plugin that asks
// for more than its operator allows is not loaded.
func (r *Registration) Limits(l Limits) *Registration {
	r.manifest.Limits = l
	return r
}

// KeepMemory asks for one instance that keeps its memory, so that variables hold
// what earlier calls left in them. Its calls come one after another; a trap loses
// what it held. What must outlive that is for [KVSet].
func (r *Registration) KeepMemory() *Registration {
	r.manifest.State = abi.StateInstance
	return r
}

// Durable makes the values durable that [KVSet] stores under keys which begin with one of the
// prefixes, "" standing for all keys. They outlive a restart of the proxy, but not of the node.
func (r *Registration) Durable(prefixes ...string) *Registration {
	r.manifest.Durable = append(r.manifest.Durable, prefixes...)
	return r
}

// ConfigSchema adds a JSON schema, an object, that the configuration must fulfil
// before the plugin sees it.
func (r *Registration) ConfigSchema(schema string) *Registration {
	r.manifest.ConfigSchema = schema
	return r
}

// OnConfigure has f look at the configuration before the first hook. If it
// returns an error, the plugin is not loaded.
func (r *Registration) OnConfigure(f func(config string) error) *Registration {
	r.configure = f
	return r
}

// OnTick registers a handler that is called every so many milliseconds, 1000 or
// more, never while it still runs.
func (r *Registration) OnTick(f func(*Tick) error, everyMS int64) *Registration {
	r.manifest.TickMS = everyMS
	return on(r, abi.Tick, f, nil)
}

// on registers f under hook. The zero value of an event type reads and writes
// the event that is under way, so one serves all calls.
func on[E any](r *Registration, hook abi.Hook, f func(*E) error, match []Match) *Registration {
	var event, zero E
	return r.add(handler{hook, func() error {
		event = zero // a handler may have changed it
		return f(&event)
	}, match})
}

// add refuses what the proxy could not keep apart: it calls a plugin once for a
// hook, so handlers of one hook cannot have matches of their own.
func (r *Registration) add(h handler) *Registration {
	for _, other := range r.handlers {
		if other.hook == h.hook && len(other.match)+len(h.match) > 0 {
			Abort("sdk: a hook with a match has one handler, and " + h.hook.String() + " has two")
		}
	}
	if len(h.match) > 1 {
		Abort("sdk: a hook has one match, and " + h.hook.String() + " has more")
	}
	r.handlers = append(r.handlers, h)
	return r
}
