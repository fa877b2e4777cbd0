package abi

import "slices"

// Group is a part of the ABI that a host serves as a whole or not at all. The first, the core, every host serves.
type Group struct {
	Name      string
	Hooks     []Hook
	Functions []string
	Writing   []Capability // of the fields that are set
	Gives     string       // for people
}

// Groups is the table of groups. Each hook and each function is in one of them.
var Groups = []Group{
	{
		Name: "core",
		Hooks: []Hook{
			PostRunPodSandbox, PreCreateContainer, PostCreateContainer, PreStartContainer, PostStartContainer, PreUpdateContainerResources,
			PostUpdateContainerResources, PostStopContainer, PostRemoveContainer, PostStopPodSandbox, PostRemovePodSandbox,
		},
		Functions: []string{
			"get", "get_i64", "map_get", "map_dump", "list_dump", "set_i64", "set_bytes", "map_set", "map_del", "list_set", "list_add", "list_del",
			"reject", "fail", "abort", "config", "log", "log_level", "now", "random", "feature",
		},
		Writing: []Capability{0, WriteResources, WriteUnified, WriteAnnotations, Env, WriteMounts, WriteDevices, WriteCDI},
		Gives:   "how a guest is loaded and called, its memory, errors and changes; resources, annotations, environment, mounts and devices of containers",
	},
	{Name: "process", Writing: []Capability{WriteImage, WriteArgs, WriteUser, WriteCgroupParent},
		Gives: "image, command, user and cgroup parent of a container that is created, and annotations in PreUpdateContainerResources"},
	{Name: "sandbox", Hooks: []Hook{PreRunPodSandbox, PreUpdatePodSandboxResources, PostUpdatePodSandboxResources},
		Writing: []Capability{WriteLabels, WriteRuntimeHandler}, Gives: "changes of a pod"},
	{Name: "stop", Hooks: []Hook{PreStopContainer, PreRemoveContainer, PreStopPodSandbox, PreRemovePodSandbox}, Gives: "what is about to stop or to be removed"},
	{Name: "stream", Hooks: []Hook{PreExec, PostExec, PreExecSync, PostExecSync, PreAttach, PostAttach, PrePortForward, PostPortForward},
		Gives: "commands and streams"},
	{Name: "checkpoint", Hooks: []Hook{PreCheckpointContainer, PostCheckpointContainer, PreCheckpointPod, PostCheckpointPod, PreRestorePod, PostRestorePod},
		Gives: "checkpoints"},
	{Name: "image", Hooks: []Hook{PrePullImage, PostPullImage, PreRemoveImage, PostRemoveImage}, Gives: "images"},
	{Name: "synchronize", Hooks: []Hook{Synchronize}, Gives: "pods that are older than the plugin"},
	{Name: "tick", Hooks: []Hook{Tick}, Gives: "calls at a period"},
	{Name: "store", Functions: []string{"pod_find", "pod_list", "container_list"}, Gives: "other pods and containers"},
	{Name: "others", Writing: []Capability{UpdateOthers}, Gives: "changes of other pods and containers, with store"},
	{Name: "cgroup", Functions: []string{"cgroup_get", "cgroup_set", "cgroup_read"}, Gives: "cgroup files"},
	{Name: "kv", Functions: []string{"kv_get", "kv_set", "kv_del"}, Gives: "values that outlive a call"},
	{Name: "metric", Functions: []string{"metric"}, Gives: "metrics"},
	{Name: "raw", Functions: []string{"cri_raw"}, Gives: "the request as it is"},
	{Name: "limits", Gives: "limits that are exactly those of wasmproxy"},
}

// Core is the name of the group that every host serves.
const Core = "core"

// GroupOfHook returns the name of the group that has a hook.
func GroupOfHook(h Hook) string {
	return groupWith(func(g *Group) bool { return slices.Contains(g.Hooks, h) })
}

// GroupOfFunction returns the name of the group that has a host function.
func GroupOfFunction(name string) string {
	return groupWith(func(g *Group) bool { return slices.Contains(g.Functions, name) })
}

// GroupOfWrite returns the name of the group in which a hook sets a field that takes this capability.
func GroupOfWrite(h Hook, c Capability) string {
	if h == PreUpdateContainerResources && c == WriteAnnotations {
		return "process"
	}
	return groupWith(func(g *Group) bool { return slices.Contains(g.Writing, c) })
}

func groupWith(has func(*Group) bool) string {
	for i := range Groups {
		if has(&Groups[i]) {
			return Groups[i].Name
		}
	}
	return ""
}
