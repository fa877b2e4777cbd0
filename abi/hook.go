package abi

// Hook is a point in the life of a CRI call at which plugins are asked. The
// numbers are part of the ABI and are never reused. The names are those of
// Koordinator's RuntimeHookService, extended by its own rule: Pre or Post and
// the CRI method.
type Hook uint8

// The hooks.
const (
	PreRunPodSandbox             Hook = 1
	PostRunPodSandbox            Hook = 2
	PreCreateContainer           Hook = 3
	PostCreateContainer          Hook = 4
	PreStartContainer            Hook = 5
	PostStartContainer           Hook = 6
	PreUpdateContainerResources  Hook = 7
	PostUpdateContainerResources Hook = 8
	PostStopContainer            Hook = 9
	PostRemoveContainer          Hook = 10
	PostStopPodSandbox           Hook = 11
)

// HookInfo is a row of the table of hooks.
type HookInfo struct {
	Hook   Hook
	Name   string
	Method string // the CRI method of runtime.v1.RuntimeService
	Pre    bool   // asked before the call is forwarded, so that it can change or refuse it
	Object Object // what the call is about: Pod or Container
}

// Hooks is the table of hooks, in the order of their numbers.
var Hooks = []HookInfo{
	{PreRunPodSandbox, "PreRunPodSandbox", "RunPodSandbox", true, Pod},
	{PostRunPodSandbox, "PostRunPodSandbox", "RunPodSandbox", false, Pod},
	{PreCreateContainer, "PreCreateContainer", "CreateContainer", true, Container},
	{PostCreateContainer, "PostCreateContainer", "CreateContainer", false, Container},
	{PreStartContainer, "PreStartContainer", "StartContainer", true, Container},
	{PostStartContainer, "PostStartContainer", "StartContainer", false, Container},
	{PreUpdateContainerResources, "PreUpdateContainerResources", "UpdateContainerResources", true, Container},
	{PostUpdateContainerResources, "PostUpdateContainerResources", "UpdateContainerResources", false, Container},
	{PostStopContainer, "PostStopContainer", "StopContainer", false, Container},
	{PostRemoveContainer, "PostRemoveContainer", "RemoveContainer", false, Container},
	{PostStopPodSandbox, "PostStopPodSandbox", "StopPodSandbox", false, Pod},
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

// Names lists the set in the order of the table.
func (s HookSet) Names() []string {
	var names []string
	for _, info := range Hooks {
		if s.Has(info.Hook) {
			names = append(names, info.Name)
		}
	}
	return names
}
