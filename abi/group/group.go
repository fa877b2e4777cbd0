// Package group has the groups of the ABI: which hooks, host functions and changes a host serves together. It is no part of
// package abi, since no guest needs it.
package group

import (
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Group is a part of the ABI that a host serves as a whole or not at all. The first, the core, every host serves.
type Group struct {
	Name      string
	Hooks     []abi.Hook
	Functions []string
	Writing   []abi.Capability // of the fields that are set
	Gives     string           // for people
}

// All is the table of groups. Each hook and each function is in one of them.
var All = []Group{
	{
		Name: "core",
		Hooks: []abi.Hook{
			abi.PostRunPodSandbox, abi.PreCreateContainer, abi.PostCreateContainer, abi.PreStartContainer,
			abi.PostStartContainer, abi.PreUpdateContainerResources,
			abi.PostUpdateContainerResources, abi.PostStopContainer, abi.PostRemoveContainer, abi.PostStopPodSandbox,
			abi.PostRemovePodSandbox,
		},
		Functions: []string{
			"get", "get_i64", "map_get", "map_dump", "list_dump",
			"set_i64", "set_bytes", "map_set", "map_del", "list_set", "list_add", "list_del",
			"withdraw", "conflict", "reject", "fail", "abort", "config", "log", "log_level", "now", "random", "feature",
		},
		Writing: []abi.Capability{
			0, abi.WriteResources, abi.WriteUnified, abi.WriteAnnotations,
			abi.Env, abi.WriteMounts, abi.WriteDevices, abi.WriteCDI,
		},
		Gives: "how a guest is loaded and called, its memory, errors and changes; " +
			"resources, annotations, environment, mounts and devices of containers",
	},
	{Name: "process", Writing: []abi.Capability{abi.WriteImage, abi.WriteArgs, abi.WriteUser, abi.WriteCgroupParent},
		Gives: "image, command, user and cgroup parent of a container that is created, and annotations in PreUpdateContainerResources"},
	{Name: "sandbox", Hooks: []abi.Hook{abi.PreRunPodSandbox, abi.PreUpdatePodSandboxResources, abi.PostUpdatePodSandboxResources},
		Writing: []abi.Capability{abi.WriteLabels, abi.WriteRuntimeHandler}, Gives: "changes of a pod"},
	{Name: "stop", Hooks: []abi.Hook{
		abi.PreStopContainer, abi.PreRemoveContainer, abi.PreStopPodSandbox, abi.PreRemovePodSandbox,
	}, Gives: "what is about to stop or to be removed"},
	{Name: "stream", Hooks: []abi.Hook{
		abi.PreExec, abi.PostExec, abi.PreExecSync, abi.PostExecSync,
		abi.PreAttach, abi.PostAttach, abi.PrePortForward, abi.PostPortForward,
	},
		Gives: "commands and streams"},
	{Name: "checkpoint", Hooks: []abi.Hook{
		abi.PreCheckpointContainer, abi.PostCheckpointContainer, abi.PreCheckpointPod, abi.PostCheckpointPod,
		abi.PreRestorePod, abi.PostRestorePod,
	},
		Gives: "checkpoints"},
	{Name: "image", Hooks: []abi.Hook{abi.PrePullImage, abi.PostPullImage, abi.PreRemoveImage, abi.PostRemoveImage}, Gives: "images"},
	{Name: "synchronize", Hooks: []abi.Hook{abi.Synchronize}, Gives: "pods that are older than the plugin"},
	{Name: "tick", Hooks: []abi.Hook{abi.Tick}, Gives: "calls at a period"},
	{Name: "store", Functions: []string{"pod_find", "pod_list", "container_list"}, Gives: "other pods and containers"},
	{Name: "others", Writing: []abi.Capability{abi.UpdateOthers}, Gives: "changes of other pods and containers, with store"},
	{Name: "cgroup", Functions: []string{"cgroup_get", "cgroup_set", "cgroup_read"}, Gives: "cgroup files"},
	{Name: "kv", Functions: []string{"kv_get", "kv_set", "kv_del"}, Gives: "values that outlive a call"},
	{Name: "metric", Functions: []string{"metric"}, Gives: "metrics"},
	{Name: "raw", Functions: []string{"cri_raw"}, Gives: "the request as it is"},
	{Name: "limits", Gives: "limits that are exactly those of wasmproxy"},
}

// Core is the name of the group that every host serves.
const Core = "core"

// OfHook returns the name of the group that has a hook.
func OfHook(h abi.Hook) string {
	return groupWith(func(g *Group) bool { return slices.Contains(g.Hooks, h) })
}

// OfFunction returns the name of the group that has a host function.
func OfFunction(name string) string {
	return groupWith(func(g *Group) bool { return slices.Contains(g.Functions, name) })
}

// OfWrite returns the name of the group in which a hook sets a field that takes this capability.
func OfWrite(h abi.Hook, c abi.Capability) string {
	if h == abi.PreUpdateContainerResources && c == abi.WriteAnnotations {
		return "process"
	}
	return groupWith(func(g *Group) bool { return slices.Contains(g.Writing, c) })
}

func groupWith(has func(*Group) bool) string {
	for i := range All {
		if has(&All[i]) {
			return All[i].Name
		}
	}
	return ""
}
