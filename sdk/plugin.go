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
	hook abi.Hook
	run  func() error
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

// OnConfigure has f look at the configuration before the first hook. If it
// returns an error, the plugin is not loaded.
func (r *Registration) OnConfigure(f func(config string) error) *Registration {
	r.configure = f
	return r
}

// OnPreRunPodSandbox registers a handler of this hook.
func (r *Registration) OnPreRunPodSandbox(f func(*PreRunPodSandbox) error) *Registration {
	return on(r, abi.PreRunPodSandbox, f)
}

// OnPostRunPodSandbox registers a handler of this hook.
func (r *Registration) OnPostRunPodSandbox(f func(*PostRunPodSandbox) error) *Registration {
	return on(r, abi.PostRunPodSandbox, f)
}

// OnPreCreateContainer registers a handler of this hook.
func (r *Registration) OnPreCreateContainer(f func(*PreCreateContainer) error) *Registration {
	return on(r, abi.PreCreateContainer, f)
}

// OnPostCreateContainer registers a handler of this hook.
func (r *Registration) OnPostCreateContainer(f func(*PostCreateContainer) error) *Registration {
	return on(r, abi.PostCreateContainer, f)
}

// OnPreStartContainer registers a handler of this hook.
func (r *Registration) OnPreStartContainer(f func(*PreStartContainer) error) *Registration {
	return on(r, abi.PreStartContainer, f)
}

// OnPostStartContainer registers a handler of this hook.
func (r *Registration) OnPostStartContainer(f func(*PostStartContainer) error) *Registration {
	return on(r, abi.PostStartContainer, f)
}

// OnPreUpdateContainerResources registers a handler of this hook.
func (r *Registration) OnPreUpdateContainerResources(f func(*PreUpdateContainerResources) error) *Registration {
	return on(r, abi.PreUpdateContainerResources, f)
}

// OnPostUpdateContainerResources registers a handler of this hook.
func (r *Registration) OnPostUpdateContainerResources(f func(*PostUpdateContainerResources) error) *Registration {
	return on(r, abi.PostUpdateContainerResources, f)
}

// OnPostStopContainer registers a handler of this hook.
func (r *Registration) OnPostStopContainer(f func(*PostStopContainer) error) *Registration {
	return on(r, abi.PostStopContainer, f)
}

// OnPostRemoveContainer registers a handler of this hook.
func (r *Registration) OnPostRemoveContainer(f func(*PostRemoveContainer) error) *Registration {
	return on(r, abi.PostRemoveContainer, f)
}

// OnPostStopPodSandbox registers a handler of this hook.
func (r *Registration) OnPostStopPodSandbox(f func(*PostStopPodSandbox) error) *Registration {
	return on(r, abi.PostStopPodSandbox, f)
}

// on registers f under hook. The zero value of an event type reads and writes
// the event that is under way.
func on[E any](r *Registration, hook abi.Hook, f func(*E) error) *Registration {
	r.handlers = append(r.handlers, handler{hook, func() error { return f(new(E)) }})
	return r
}
