// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// OnPreRunPodSandbox registers a handler of hook PreRunPodSandbox, for what matches if a match is given.
func (r *Registration) OnPreRunPodSandbox(f func(*PreRunPodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PreRunPodSandbox, f, match)
}

// OnPostRunPodSandbox registers a handler of hook PostRunPodSandbox, for what matches if a match is given.
func (r *Registration) OnPostRunPodSandbox(f func(*PostRunPodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PostRunPodSandbox, f, match)
}

// OnPreCreateContainer registers a handler of hook PreCreateContainer, for what matches if a match is given.
func (r *Registration) OnPreCreateContainer(f func(*PreCreateContainer) error, match ...Match) *Registration {
	return on(r, abi.PreCreateContainer, f, match)
}

// OnPostCreateContainer registers a handler of hook PostCreateContainer, for what matches if a match is given.
func (r *Registration) OnPostCreateContainer(f func(*PostCreateContainer) error, match ...Match) *Registration {
	return on(r, abi.PostCreateContainer, f, match)
}

// OnPreStartContainer registers a handler of hook PreStartContainer, for what matches if a match is given.
func (r *Registration) OnPreStartContainer(f func(*PreStartContainer) error, match ...Match) *Registration {
	return on(r, abi.PreStartContainer, f, match)
}

// OnPostStartContainer registers a handler of hook PostStartContainer, for what matches if a match is given.
func (r *Registration) OnPostStartContainer(f func(*PostStartContainer) error, match ...Match) *Registration {
	return on(r, abi.PostStartContainer, f, match)
}

// OnPreUpdateContainerResources registers a handler of hook PreUpdateContainerResources, for what matches if a match is given.
func (r *Registration) OnPreUpdateContainerResources(f func(*PreUpdateContainerResources) error, match ...Match) *Registration {
	return on(r, abi.PreUpdateContainerResources, f, match)
}

// OnPostUpdateContainerResources registers a handler of hook PostUpdateContainerResources, for what matches if a match is given.
func (r *Registration) OnPostUpdateContainerResources(f func(*PostUpdateContainerResources) error, match ...Match) *Registration {
	return on(r, abi.PostUpdateContainerResources, f, match)
}

// OnPostStopContainer registers a handler of hook PostStopContainer, for what matches if a match is given.
func (r *Registration) OnPostStopContainer(f func(*PostStopContainer) error, match ...Match) *Registration {
	return on(r, abi.PostStopContainer, f, match)
}

// OnPostRemoveContainer registers a handler of hook PostRemoveContainer, for what matches if a match is given.
func (r *Registration) OnPostRemoveContainer(f func(*PostRemoveContainer) error, match ...Match) *Registration {
	return on(r, abi.PostRemoveContainer, f, match)
}

// OnPostStopPodSandbox registers a handler of hook PostStopPodSandbox, for what matches if a match is given.
func (r *Registration) OnPostStopPodSandbox(f func(*PostStopPodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PostStopPodSandbox, f, match)
}

// OnPreStopContainer registers a handler of hook PreStopContainer, for what matches if a match is given.
func (r *Registration) OnPreStopContainer(f func(*PreStopContainer) error, match ...Match) *Registration {
	return on(r, abi.PreStopContainer, f, match)
}

// OnPreRemoveContainer registers a handler of hook PreRemoveContainer, for what matches if a match is given.
func (r *Registration) OnPreRemoveContainer(f func(*PreRemoveContainer) error, match ...Match) *Registration {
	return on(r, abi.PreRemoveContainer, f, match)
}

// OnPreStopPodSandbox registers a handler of hook PreStopPodSandbox, for what matches if a match is given.
func (r *Registration) OnPreStopPodSandbox(f func(*PreStopPodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PreStopPodSandbox, f, match)
}

// OnPreRemovePodSandbox registers a handler of hook PreRemovePodSandbox, for what matches if a match is given.
func (r *Registration) OnPreRemovePodSandbox(f func(*PreRemovePodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PreRemovePodSandbox, f, match)
}

// OnPostRemovePodSandbox registers a handler of hook PostRemovePodSandbox, for what matches if a match is given.
func (r *Registration) OnPostRemovePodSandbox(f func(*PostRemovePodSandbox) error, match ...Match) *Registration {
	return on(r, abi.PostRemovePodSandbox, f, match)
}

// OnPreUpdatePodSandboxResources registers a handler of hook PreUpdatePodSandboxResources, for what matches if a match is given.
func (r *Registration) OnPreUpdatePodSandboxResources(f func(*PreUpdatePodSandboxResources) error, match ...Match) *Registration {
	return on(r, abi.PreUpdatePodSandboxResources, f, match)
}

// OnPostUpdatePodSandboxResources registers a handler of hook PostUpdatePodSandboxResources, for what matches if a match is given.
func (r *Registration) OnPostUpdatePodSandboxResources(f func(*PostUpdatePodSandboxResources) error, match ...Match) *Registration {
	return on(r, abi.PostUpdatePodSandboxResources, f, match)
}

// OnPreExec registers a handler of hook PreExec, for what matches if a match is given.
func (r *Registration) OnPreExec(f func(*PreExec) error, match ...Match) *Registration {
	return on(r, abi.PreExec, f, match)
}

// OnPostExec registers a handler of hook PostExec, for what matches if a match is given.
func (r *Registration) OnPostExec(f func(*PostExec) error, match ...Match) *Registration {
	return on(r, abi.PostExec, f, match)
}

// OnPreExecSync registers a handler of hook PreExecSync, for what matches if a match is given.
func (r *Registration) OnPreExecSync(f func(*PreExecSync) error, match ...Match) *Registration {
	return on(r, abi.PreExecSync, f, match)
}

// OnPostExecSync registers a handler of hook PostExecSync, for what matches if a match is given.
func (r *Registration) OnPostExecSync(f func(*PostExecSync) error, match ...Match) *Registration {
	return on(r, abi.PostExecSync, f, match)
}

// OnPreAttach registers a handler of hook PreAttach, for what matches if a match is given.
func (r *Registration) OnPreAttach(f func(*PreAttach) error, match ...Match) *Registration {
	return on(r, abi.PreAttach, f, match)
}

// OnPostAttach registers a handler of hook PostAttach, for what matches if a match is given.
func (r *Registration) OnPostAttach(f func(*PostAttach) error, match ...Match) *Registration {
	return on(r, abi.PostAttach, f, match)
}

// OnPrePortForward registers a handler of hook PrePortForward, for what matches if a match is given.
func (r *Registration) OnPrePortForward(f func(*PrePortForward) error, match ...Match) *Registration {
	return on(r, abi.PrePortForward, f, match)
}

// OnPostPortForward registers a handler of hook PostPortForward, for what matches if a match is given.
func (r *Registration) OnPostPortForward(f func(*PostPortForward) error, match ...Match) *Registration {
	return on(r, abi.PostPortForward, f, match)
}

// OnPreCheckpointContainer registers a handler of hook PreCheckpointContainer, for what matches if a match is given.
func (r *Registration) OnPreCheckpointContainer(f func(*PreCheckpointContainer) error, match ...Match) *Registration {
	return on(r, abi.PreCheckpointContainer, f, match)
}

// OnPostCheckpointContainer registers a handler of hook PostCheckpointContainer, for what matches if a match is given.
func (r *Registration) OnPostCheckpointContainer(f func(*PostCheckpointContainer) error, match ...Match) *Registration {
	return on(r, abi.PostCheckpointContainer, f, match)
}

// OnPreCheckpointPod registers a handler of hook PreCheckpointPod, for what matches if a match is given.
func (r *Registration) OnPreCheckpointPod(f func(*PreCheckpointPod) error, match ...Match) *Registration {
	return on(r, abi.PreCheckpointPod, f, match)
}

// OnPostCheckpointPod registers a handler of hook PostCheckpointPod, for what matches if a match is given.
func (r *Registration) OnPostCheckpointPod(f func(*PostCheckpointPod) error, match ...Match) *Registration {
	return on(r, abi.PostCheckpointPod, f, match)
}

// OnPreRestorePod registers a handler of hook PreRestorePod, for what matches if a match is given.
func (r *Registration) OnPreRestorePod(f func(*PreRestorePod) error, match ...Match) *Registration {
	return on(r, abi.PreRestorePod, f, match)
}

// OnPostRestorePod registers a handler of hook PostRestorePod, for what matches if a match is given.
func (r *Registration) OnPostRestorePod(f func(*PostRestorePod) error, match ...Match) *Registration {
	return on(r, abi.PostRestorePod, f, match)
}

// OnPrePullImage registers a handler of hook PrePullImage, for what matches if a match is given.
func (r *Registration) OnPrePullImage(f func(*PrePullImage) error, match ...Match) *Registration {
	return on(r, abi.PrePullImage, f, match)
}

// OnPostPullImage registers a handler of hook PostPullImage, for what matches if a match is given.
func (r *Registration) OnPostPullImage(f func(*PostPullImage) error, match ...Match) *Registration {
	return on(r, abi.PostPullImage, f, match)
}

// OnPreRemoveImage registers a handler of hook PreRemoveImage, for what matches if a match is given.
func (r *Registration) OnPreRemoveImage(f func(*PreRemoveImage) error, match ...Match) *Registration {
	return on(r, abi.PreRemoveImage, f, match)
}

// OnPostRemoveImage registers a handler of hook PostRemoveImage, for what matches if a match is given.
func (r *Registration) OnPostRemoveImage(f func(*PostRemoveImage) error, match ...Match) *Registration {
	return on(r, abi.PostRemoveImage, f, match)
}

// OnSynchronize registers a handler of hook Synchronize, for what matches if a match is given.
func (r *Registration) OnSynchronize(f func(*Synchronize) error, match ...Match) *Registration {
	return on(r, abi.Synchronize, f, match)
}
