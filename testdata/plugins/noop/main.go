// Command noop is a plugin that hooks everything and does nothing. The tests
// run critest through it: a hook that changes nothing must not be noticed.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs

func init() {
	wp.Plugin("noop", "1.0.0").
		OnPreRunPodSandbox(nothing[wp.PreRunPodSandbox]).
		OnPostRunPodSandbox(nothing[wp.PostRunPodSandbox]).
		OnPreCreateContainer(nothing[wp.PreCreateContainer]).
		OnPostCreateContainer(nothing[wp.PostCreateContainer]).
		OnPreStartContainer(nothing[wp.PreStartContainer]).
		OnPostStartContainer(nothing[wp.PostStartContainer]).
		OnPreUpdateContainerResources(nothing[wp.PreUpdateContainerResources]).
		OnPostUpdateContainerResources(nothing[wp.PostUpdateContainerResources]).
		OnPostStopContainer(nothing[wp.PostStopContainer]).
		OnPostRemoveContainer(nothing[wp.PostRemoveContainer]).
		OnPostStopPodSandbox(nothing[wp.PostStopPodSandbox])
}

func nothing[E any](*E) error { return nil }
