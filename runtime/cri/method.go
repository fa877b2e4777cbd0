package cri

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A Method is a unary method that the proxy can decode: plugins may hook it, or
// the store follows it.
type Method struct {
	Name        string   // as on the wire: "/runtime.v1.RuntimeService/CreateContainer"
	Pre, Post   abi.Hook // 0 where there is none
	Followed    bool     // by the store, whether a plugin hooks it or not
	NewRequest  func() proto.Message
	NewResponse func() proto.Message
}

// Hooks returns the method's hooks.
func (m Method) Hooks() abi.HookSet { return abi.HookSetOf(m.Pre, m.Post) &^ 1 }

// Methods is the whole of what the proxy decodes: those that the store follows
// if any plugin is loaded, the others if one hooks them. A method that is not here
// always passes as bytes.
var Methods = []Method{
	followed(method[runtimeapi.RunPodSandboxRequest, runtimeapi.RunPodSandboxResponse]("RunPodSandbox")),
	followed(method[runtimeapi.StopPodSandboxRequest, runtimeapi.StopPodSandboxResponse]("StopPodSandbox")),
	followed(method[runtimeapi.RemovePodSandboxRequest, runtimeapi.RemovePodSandboxResponse]("RemovePodSandbox")),
	followed(method[runtimeapi.UpdatePodSandboxResourcesRequest, runtimeapi.UpdatePodSandboxResourcesResponse]("UpdatePodSandboxResources")),
	followed(method[runtimeapi.CreateContainerRequest, runtimeapi.CreateContainerResponse]("CreateContainer")),
	followed(method[runtimeapi.StartContainerRequest, runtimeapi.StartContainerResponse]("StartContainer")),
	followed(method[runtimeapi.StopContainerRequest, runtimeapi.StopContainerResponse]("StopContainer")),
	followed(method[runtimeapi.RemoveContainerRequest, runtimeapi.RemoveContainerResponse]("RemoveContainer")),
	followed(method[runtimeapi.UpdateContainerResourcesRequest, runtimeapi.UpdateContainerResourcesResponse]("UpdateContainerResources")),
	followed(method[runtimeapi.RestorePodRequest, runtimeapi.RestorePodResponse]("RestorePod")),
	method[runtimeapi.CheckpointContainerRequest, runtimeapi.CheckpointContainerResponse]("CheckpointContainer"),
	method[runtimeapi.CheckpointPodRequest, runtimeapi.CheckpointPodResponse]("CheckpointPod"),
	method[runtimeapi.ExecRequest, runtimeapi.ExecResponse]("Exec"),
	method[runtimeapi.ExecSyncRequest, runtimeapi.ExecSyncResponse]("ExecSync"),
	method[runtimeapi.AttachRequest, runtimeapi.AttachResponse]("Attach"),
	method[runtimeapi.PortForwardRequest, runtimeapi.PortForwardResponse]("PortForward"),
	ofImages(method[runtimeapi.PullImageRequest, runtimeapi.PullImageResponse]("PullImage")),
	ofImages(method[runtimeapi.RemoveImageRequest, runtimeapi.RemoveImageResponse]("RemoveImage")),
}

// method builds a row of the RuntimeService; its hooks come from the table of
// hooks, where a name stands for one method of either service.
func method[Req, Resp any, PReq message[Req], PResp message[Resp]](name string) Method {
	m := Method{
		Name:        "/" + runtimeapi.RuntimeService_ServiceDesc.ServiceName + "/" + name,
		NewRequest:  func() proto.Message { return PReq(new(Req)) },
		NewResponse: func() proto.Message { return PResp(new(Resp)) },
	}
	for _, hook := range abi.Hooks {
		switch {
		case hook.Method != name:
		case hook.Asked == abi.After:
			m.Post = hook.Hook
		default:
			m.Pre = hook.Hook
		}
	}
	return m
}

func followed(m Method) Method {
	m.Followed = true
	return m
}

// ofImages makes it a row of the ImageService, which may be another backend's.
func ofImages(m Method) Method {
	_, name, _ := strings.Cut(m.Name[1:], "/")
	m.Name = "/" + runtimeapi.ImageService_ServiceDesc.ServiceName + "/" + name
	return m
}

// message is a pointer to a generated message.
type message[T any] interface {
	*T
	proto.Message
}
