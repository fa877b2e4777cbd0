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
		OnPostStopPodSandbox(nothing[wp.PostStopPodSandbox]).
		OnPreStopContainer(nothing[wp.PreStopContainer]).
		OnPreRemoveContainer(nothing[wp.PreRemoveContainer]).
		OnPreStopPodSandbox(nothing[wp.PreStopPodSandbox]).
		OnPreRemovePodSandbox(nothing[wp.PreRemovePodSandbox]).
		OnPostRemovePodSandbox(nothing[wp.PostRemovePodSandbox]).
		OnPreUpdatePodSandboxResources(nothing[wp.PreUpdatePodSandboxResources]).
		OnPostUpdatePodSandboxResources(nothing[wp.PostUpdatePodSandboxResources]).
		OnPreExec(nothing[wp.PreExec]).
		OnPostExec(nothing[wp.PostExec]).
		OnPreExecSync(nothing[wp.PreExecSync]).
		OnPostExecSync(nothing[wp.PostExecSync]).
		OnPreAttach(nothing[wp.PreAttach]).
		OnPostAttach(nothing[wp.PostAttach]).
		OnPrePortForward(nothing[wp.PrePortForward]).
		OnPostPortForward(nothing[wp.PostPortForward]).
		OnPreCheckpointContainer(nothing[wp.PreCheckpointContainer]).
		OnPostCheckpointContainer(nothing[wp.PostCheckpointContainer]).
		OnPreCheckpointPod(nothing[wp.PreCheckpointPod]).
		OnPostCheckpointPod(nothing[wp.PostCheckpointPod]).
		OnPreRestorePod(nothing[wp.PreRestorePod]).
		OnPostRestorePod(nothing[wp.PostRestorePod]).
		OnPrePullImage(nothing[wp.PrePullImage]).
		OnPostPullImage(nothing[wp.PostPullImage]).
		OnPreRemoveImage(nothing[wp.PreRemoveImage]).
		OnPostRemoveImage(nothing[wp.PostRemoveImage]).
		OnSynchronize(nothing[wp.Synchronize]).
		OnTick(nothing[wp.Tick], 1000)
}

func nothing[E any](*E) error { return nil }
