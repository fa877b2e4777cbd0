package main

import (
	"context"
	"encoding/json"
	"maps"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
)

// overlayKey is the pod annotation that says what to write over the echo.
const overlayKey = "overlay"

// overlay is what koordlet's hooks can decide. What is absent is left as it was.
type overlay struct {
	Labels, Annotations map[string]string
	CgroupParent        string
	CPUSet              *string // koordlet really empties it for pods of QoS BestEffort
	Quota               *int64
	Shares              *int64
	Memory              *int64
	Env                 map[string]string  // added to what was sent
	Then                map[string]overlay // in its place in updates of a container, by the value of unified["memory.low"]
	Bare                bool               // answers with the overlay alone, as no server of Koordinator's does
}

func overlayOf(podAnnotations map[string]string) (o overlay, err error) {
	if text, ok := podAnnotations[overlayKey]; ok {
		err = json.Unmarshal([]byte(text), &o)
	}
	return o, err
}

// koordlet answers as koordlet does: the request again, with some of it written over.
type koordlet struct {
	hook.UnimplementedRuntimeHookServiceServer
}

func (koordlet) PreRunPodSandboxHook(_ context.Context, req *hook.PodSandboxHookRequest) (*hook.PodSandboxHookResponse, error) {
	return answerPod(req)
}

func (koordlet) PreCreateContainerHook(_ context.Context, req *hook.ContainerResourceHookRequest) (*hook.ContainerResourceHookResponse, error) {
	return answerContainer(req)
}

func (koordlet) PreUpdateContainerResourcesHook(_ context.Context, req *hook.ContainerResourceHookRequest) (*hook.ContainerResourceHookResponse, error) {
	return answerContainer(req)
}

func answerPod(req *hook.PodSandboxHookRequest) (*hook.PodSandboxHookResponse, error) {
	o, err := overlayOf(req.GetAnnotations())
	if o.Bare {
		req = nil
	}
	resp := &hook.PodSandboxHookResponse{
		Labels:       with(req.GetLabels(), o.Labels),
		Annotations:  with(req.GetAnnotations(), o.Annotations),
		CgroupParent: req.GetCgroupParent(),
		Resources:    req.GetResources(),
	}
	if o.CgroupParent != "" {
		resp.CgroupParent = o.CgroupParent
	}
	return resp, err
}

func answerContainer(req *hook.ContainerResourceHookRequest) (*hook.ContainerResourceHookResponse, error) {
	o, err := overlayOf(req.GetPodAnnotations())
	if then, ok := o.Then[req.GetContainerResources().GetUnified()["memory.low"]]; ok {
		o = then
	}
	if o.Bare {
		req = nil
	}
	resp := &hook.ContainerResourceHookResponse{
		ContainerAnnotations: with(req.GetContainerAnnotations(), o.Annotations),
		ContainerResources:   req.GetContainerResources(),
		PodCgroupParent:      req.GetPodCgroupParent(),
		ContainerEnvs:        with(req.GetContainerEnvs(), o.Env),
	}
	o.writeResources(resp)
	return resp, err
}

func (o overlay) writeResources(resp *hook.ContainerResourceHookResponse) {
	if o.CPUSet == nil && o.Quota == nil && o.Shares == nil && o.Memory == nil {
		return
	}
	if resp.ContainerResources == nil {
		resp.ContainerResources = &hook.LinuxContainerResources{}
	}
	r := resp.ContainerResources
	set(&r.CpusetCpus, o.CPUSet)
	set(&r.CpuQuota, o.Quota)
	set(&r.CpuShares, o.Shares)
	set(&r.MemoryLimitInBytes, o.Memory)
}

func set[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

func with(sent, more map[string]string) map[string]string {
	all := make(map[string]string, len(sent)+len(more))
	maps.Copy(all, sent)
	maps.Copy(all, more)
	return all
}
