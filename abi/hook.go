package abi

// Hook is a point in the life of a CRI call at which plugins are called, or one
// of no call. The
// numbers are part of the ABI and are never reused. The names are those of
// Koordinator's RuntimeHookService, extended by its own rule: Pre or Post and
// the CRI method.
type Hook uint8

// The hooks.
const (
	PreRunPodSandbox              Hook = 1
	PostRunPodSandbox             Hook = 2
	PreCreateContainer            Hook = 3
	PostCreateContainer           Hook = 4
	PreStartContainer             Hook = 5
	PostStartContainer            Hook = 6
	PreUpdateContainerResources   Hook = 7
	PostUpdateContainerResources  Hook = 8
	PostStopContainer             Hook = 9
	PostRemoveContainer           Hook = 10
	PostStopPodSandbox            Hook = 11
	PreStopContainer              Hook = 12
	PreRemoveContainer            Hook = 13
	PreStopPodSandbox             Hook = 14
	PreRemovePodSandbox           Hook = 15
	PostRemovePodSandbox          Hook = 16
	PreUpdatePodSandboxResources  Hook = 17
	PostUpdatePodSandboxResources Hook = 18
	PreExec                       Hook = 19
	PostExec                      Hook = 20
	PreExecSync                   Hook = 21
	PostExecSync                  Hook = 22
	PreAttach                     Hook = 23
	PostAttach                    Hook = 24
	PrePortForward                Hook = 25
	PostPortForward               Hook = 26
	PreCheckpointContainer        Hook = 27
	PostCheckpointContainer       Hook = 28
	PreCheckpointPod              Hook = 29
	PostCheckpointPod             Hook = 30
	PreRestorePod                 Hook = 31
	PostRestorePod                Hook = 32
	PrePullImage                  Hook = 33
	PostPullImage                 Hook = 34
	PreRemoveImage                Hook = 35
	PostRemoveImage               Hook = 36

	// Synchronize tells a plugin of a pod that is older than the plugin's place
	// in the chain, or has a container that is, before any other event of these. After
	// a change of the plugin's files it tells of all pods.
	Synchronize Hook = 37
	// Tick comes at the period that the manifest asks for, one at a time.
	Tick Hook = 38
)

// Phase says when a hook's plugins are called, and what they may do.
type Phase uint8

// The phases.
const (
	Before         Phase = iota + 1 // the call is forwarded: it can be changed and refused
	BeforeNoReject                  // before as well, but the call cannot be refused: what is to stop must stop
	After                           // the runtime has answered OK; delays nobody
	Standalone                      // of no call
)

// HookInfo is a row of the table of hooks.
type HookInfo struct {
	Hook   Hook
	Name   string
	Method string // the CRI method of runtime.v1.RuntimeService or ImageService; "" for hooks that are no call's
	Phase  Phase
	Object Object // what it is about: Pod, Container, or Event where there is neither
}

// Hooks is the table of hooks, in the order of their numbers.
var Hooks = []HookInfo{
	{PreRunPodSandbox, "PreRunPodSandbox", "RunPodSandbox", Before, Pod},
	{PostRunPodSandbox, "PostRunPodSandbox", "RunPodSandbox", After, Pod},
	{PreCreateContainer, "PreCreateContainer", "CreateContainer", Before, Container},
	{PostCreateContainer, "PostCreateContainer", "CreateContainer", After, Container},
	{PreStartContainer, "PreStartContainer", "StartContainer", Before, Container},
	{PostStartContainer, "PostStartContainer", "StartContainer", After, Container},
	{PreUpdateContainerResources, "PreUpdateContainerResources", "UpdateContainerResources", Before, Container},
	{PostUpdateContainerResources, "PostUpdateContainerResources", "UpdateContainerResources", After, Container},
	{PostStopContainer, "PostStopContainer", "StopContainer", After, Container},
	{PostRemoveContainer, "PostRemoveContainer", "RemoveContainer", After, Container},
	{PostStopPodSandbox, "PostStopPodSandbox", "StopPodSandbox", After, Pod},
	{PreStopContainer, "PreStopContainer", "StopContainer", BeforeNoReject, Container},
	{PreRemoveContainer, "PreRemoveContainer", "RemoveContainer", BeforeNoReject, Container},
	{PreStopPodSandbox, "PreStopPodSandbox", "StopPodSandbox", BeforeNoReject, Pod},
	{PreRemovePodSandbox, "PreRemovePodSandbox", "RemovePodSandbox", BeforeNoReject, Pod},
	{PostRemovePodSandbox, "PostRemovePodSandbox", "RemovePodSandbox", After, Pod},
	{PreUpdatePodSandboxResources, "PreUpdatePodSandboxResources", "UpdatePodSandboxResources", Before, Pod},
	{PostUpdatePodSandboxResources, "PostUpdatePodSandboxResources", "UpdatePodSandboxResources", After, Pod},
	{PreExec, "PreExec", "Exec", Before, Container},
	{PostExec, "PostExec", "Exec", After, Container},
	{PreExecSync, "PreExecSync", "ExecSync", Before, Container},
	{PostExecSync, "PostExecSync", "ExecSync", After, Container},
	{PreAttach, "PreAttach", "Attach", Before, Container},
	{PostAttach, "PostAttach", "Attach", After, Container},
	{PrePortForward, "PrePortForward", "PortForward", Before, Pod},
	{PostPortForward, "PostPortForward", "PortForward", After, Pod},
	{PreCheckpointContainer, "PreCheckpointContainer", "CheckpointContainer", Before, Container},
	{PostCheckpointContainer, "PostCheckpointContainer", "CheckpointContainer", After, Container},
	{PreCheckpointPod, "PreCheckpointPod", "CheckpointPod", Before, Pod},
	{PostCheckpointPod, "PostCheckpointPod", "CheckpointPod", After, Pod},
	{PreRestorePod, "PreRestorePod", "RestorePod", Before, Pod},
	{PostRestorePod, "PostRestorePod", "RestorePod", After, Pod},
	{PrePullImage, "PrePullImage", "PullImage", Before, Event},
	{PostPullImage, "PostPullImage", "PullImage", After, Event},
	{PreRemoveImage, "PreRemoveImage", "RemoveImage", Before, Event},
	{PostRemoveImage, "PostRemoveImage", "RemoveImage", After, Event},
	{Synchronize, "Synchronize", "", Standalone, Pod},
	{Tick, "Tick", "", Standalone, Event},
}

// String returns the hook's name, or "" for a number that is no hook.
func (h Hook) String() string { return h.Info().Name }

// Info returns the hook's row of the table; the zero row for a number that is no hook.
func (h Hook) Info() HookInfo {
	if h == 0 || int(h) > len(Hooks) {
		return HookInfo{}
	}
	return Hooks[h-1]
}

// HookByName finds a hook by its exact name.
func HookByName(name string) (Hook, bool) {
	for _, info := range Hooks {
		if info.Name == name {
			return info.Hook, true
		}
	}
	return 0, false
}

// HookSet is a set of hooks, one bit each.
type HookSet uint64

// HookSetOf returns the set of exactly these hooks.
func HookSetOf(hooks ...Hook) HookSet {
	var s HookSet
	for _, h := range hooks {
		s |= 1 << h
	}
	return s
}

// Has reports whether h is in the set.
func (s HookSet) Has(h Hook) bool { return s&(1<<h) != 0 }
