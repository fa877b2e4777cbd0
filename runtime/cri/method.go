package cri

import (
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A Method is a unary method that the proxy can decode: plugins may hook it, or
// the store follows it.
type Method struct {
	Name        string   // as on the wire: "/runtime.v1.RuntimeService/CreateContainer"
	Pre, Post   abi.Hook // 0 where there is none
	NewRequest  func() proto.Message
	NewResponse func() proto.Message
}

// Hooks returns the method's hooks.
func (m Method) Hooks() abi.HookSet { return abi.HookSetOf(m.Pre, m.Post) &^ 1 }

// Methods is the whole of what the proxy decodes, and only if a plugin is
// loaded. A method that is not here always passes as bytes.
var Methods = []Method{
	method[runtimeapi.RunPodSandboxRequest, runtimeapi.RunPodSandboxResponse]("RunPodSandbox"),
	method[runtimeapi.StopPodSandboxRequest, runtimeapi.StopPodSandboxResponse]("StopPodSandbox"),
	method[runtimeapi.RemovePodSandboxRequest, runtimeapi.RemovePodSandboxResponse]("RemovePodSandbox"),
	method[runtimeapi.UpdatePodSandboxResourcesRequest, runtimeapi.UpdatePodSandboxResourcesResponse]("UpdatePodSandboxResources"),
	method[runtimeapi.CreateContainerRequest, runtimeapi.CreateContainerResponse]("CreateContainer"),
	method[runtimeapi.StartContainerRequest, runtimeapi.StartContainerResponse]("StartContainer"),
	method[runtimeapi.StopContainerRequest, runtimeapi.StopContainerResponse]("StopContainer"),
	method[runtimeapi.RemoveContainerRequest, runtimeapi.RemoveContainerResponse]("RemoveContainer"),
	method[runtimeapi.UpdateContainerResourcesRequest, runtimeapi.UpdateContainerResourcesResponse]("UpdateContainerResources"),
	method[runtimeapi.RestorePodRequest, runtimeapi.RestorePodResponse]("RestorePod"),
}

// method builds a row; its hooks come from the table of hooks.
func method[Req, Resp any, PReq message[Req], PResp message[Resp]](name string) Method {
	m := Method{
		Name:        "/" + runtimeapi.RuntimeService_ServiceDesc.ServiceName + "/" + name,
		NewRequest:  func() proto.Message { return PReq(new(Req)) },
		NewResponse: func() proto.Message { return PResp(new(Resp)) },
	}
	for _, hook := range abi.Hooks {
		switch {
		case hook.Method != name:
		case hook.Pre:
			m.Pre = hook.Hook
		default:
			m.Post = hook.Hook
		}
	}
	return m
}

// message is a pointer to a generated message.
type message[T any] interface {
	*T
	proto.Message
}
