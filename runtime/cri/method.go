package cri

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A Method is a unary method that the proxy can decode: plugins may hook it, or
// the store follows it.
type Method struct {
	Name        string     // as on the wire: "/runtime.v1.RuntimeService/CreateContainer"
	Object      abi.Object // what the call is about: abi.Pod, abi.Container, or abi.Event for an image
	Effect      Effect     // on its object; the store follows every effect, whether a plugin hooks the method or not
	Pre, Post   abi.Hook   // 0 where there is none
	NewRequest  func() proto.Message
	NewResponse func() proto.Message
	Carries     func(req proto.Message) Carried // of one of the method's requests
}

// Effect is what a call that succeeded has done to its object.
type Effect uint8

// The effects.
const (
	Nothing Effect = iota
	Makes
	Starts
	Stops
	Removes
	Updates
)

// Carried are the parts of a request that plugins may change, and the pod that it shows. A
// part is nil where the method has no such field.
type Carried struct {
	Pod                 **runtimeapi.PodSandboxConfig
	RuntimeHandler      *string
	Container           **runtimeapi.ContainerConfig
	Overhead, Resources **runtimeapi.LinuxContainerResources
	Annotations         *map[string]string
}

// Hooks returns the method's hooks.
func (m *Method) Hooks() abi.HookSet { return abi.HookSetOf(m.Pre, m.Post) &^ 1 }

// MakesPods reports whether the method makes a pod. A nil method, which the proxy does not
// decode, makes none.
func (m *Method) MakesPods() bool { return m != nil && m.Effect == Makes && m.Object == abi.Pod }

// Methods is the whole of what the proxy decodes: those with an effect if any plugin is
// loaded, the others if one hooks them. A method that is not here always passes as bytes.
var Methods = []Method{
	row[runtimeapi.RunPodSandboxRequest, runtimeapi.RunPodSandboxResponse]("RunPodSandbox", Makes, func(req proto.Message) Carried {
		r := req.(*runtimeapi.RunPodSandboxRequest)
		return Carried{Pod: &r.Config, RuntimeHandler: &r.RuntimeHandler}
	}),
	row[runtimeapi.StopPodSandboxRequest, runtimeapi.StopPodSandboxResponse]("StopPodSandbox", Stops, nil),
	row[runtimeapi.RemovePodSandboxRequest, runtimeapi.RemovePodSandboxResponse]("RemovePodSandbox", Removes, nil),
	row[runtimeapi.UpdatePodSandboxResourcesRequest, runtimeapi.UpdatePodSandboxResourcesResponse](
		"UpdatePodSandboxResources", Updates, func(req proto.Message) Carried {
			r := req.(*runtimeapi.UpdatePodSandboxResourcesRequest)
			return Carried{Overhead: &r.Overhead, Resources: &r.Resources}
		},
	),
	row[runtimeapi.CreateContainerRequest, runtimeapi.CreateContainerResponse]("CreateContainer", Makes, func(req proto.Message) Carried {
		r := req.(*runtimeapi.CreateContainerRequest)
		return Carried{Pod: &r.SandboxConfig, Container: &r.Config}
	}),
	row[runtimeapi.StartContainerRequest, runtimeapi.StartContainerResponse]("StartContainer", Starts, nil),
	row[runtimeapi.StopContainerRequest, runtimeapi.StopContainerResponse]("StopContainer", Stops, nil),
	row[runtimeapi.RemoveContainerRequest, runtimeapi.RemoveContainerResponse]("RemoveContainer", Removes, nil),
	row[runtimeapi.UpdateContainerResourcesRequest, runtimeapi.UpdateContainerResourcesResponse](
		"UpdateContainerResources", Updates, func(req proto.Message) Carried {
			r := req.(*runtimeapi.UpdateContainerResourcesRequest)
			return Carried{Resources: &r.Linux, Annotations: &r.Annotations}
		},
	),
	row[runtimeapi.RestorePodRequest, runtimeapi.RestorePodResponse]("RestorePod", Makes, func(req proto.Message) Carried {
		r := req.(*runtimeapi.RestorePodRequest)
		return Carried{Pod: &r.Config, RuntimeHandler: &r.RuntimeHandler}
	}),
	row[runtimeapi.CheckpointContainerRequest, runtimeapi.CheckpointContainerResponse]("CheckpointContainer", Nothing, nil),
	row[runtimeapi.CheckpointPodRequest, runtimeapi.CheckpointPodResponse]("CheckpointPod", Nothing, nil),
	row[runtimeapi.ExecRequest, runtimeapi.ExecResponse]("Exec", Nothing, nil),
	row[runtimeapi.ExecSyncRequest, runtimeapi.ExecSyncResponse]("ExecSync", Nothing, nil),
	row[runtimeapi.AttachRequest, runtimeapi.AttachResponse]("Attach", Nothing, nil),
	row[runtimeapi.PortForwardRequest, runtimeapi.PortForwardResponse]("PortForward", Nothing, nil),
	row[runtimeapi.PullImageRequest, runtimeapi.PullImageResponse]("PullImage", Nothing, func(req proto.Message) Carried {
		r := req.(*runtimeapi.PullImageRequest)
		return Carried{Pod: &r.SandboxConfig}
	}),
	row[runtimeapi.RemoveImageRequest, runtimeapi.RemoveImageResponse]("RemoveImage", Nothing, nil),
}

// row builds a row; its hooks come from the table of hooks. A method about no pod or
// container is one of the ImageService, which may be another backend's.
func row[Req, Resp any, PReq message[Req], PResp message[Resp]](name string, effect Effect, carries func(proto.Message) Carried) Method {
	m := Method{
		Effect:      effect,
		NewRequest:  func() proto.Message { return PReq(new(Req)) },
		NewResponse: func() proto.Message { return PResp(new(Resp)) },
		Carries:     carries,
	}
	if carries == nil {
		m.Carries = func(proto.Message) Carried { return Carried{} }
	}
	for _, hook := range abi.Hooks {
		switch {
		case hook.Method != name:
			continue
		case hook.Phase == abi.After:
			m.Post = hook.Hook
		default:
			m.Pre = hook.Hook
		}
		m.Object = hook.Object
	}
	service := runtimeapi.RuntimeService_ServiceDesc.ServiceName
	if m.Object == abi.Event {
		service = runtimeapi.ImageService_ServiceDesc.ServiceName
	}
	m.Name = "/" + service + "/" + name
	return m
}

// message is a pointer to a generated message.
type message[T any] interface {
	*T
	proto.Message
}

// byName has the methods by their names on the wire, and without the service.
var byName = func() map[string]*Method {
	all := map[string]*Method{}
	for i := range Methods {
		m := &Methods[i]
		all[m.Name], all[m.Name[strings.LastIndexByte(m.Name, '/')+1:]] = m, m
	}
	return all
}()

// MethodNamed returns the method of a name, as on the wire or without the service; nil if
// the proxy decodes no such method.
func MethodNamed(name string) *Method { return byName[name] }

// MethodOf returns the method of a request, nil if the proxy decodes no such method.
func MethodOf(req proto.Message) *Method {
	if req == nil || !req.ProtoReflect().IsValid() { // it may be a nil pointer
		return nil
	}
	return byName[strings.TrimSuffix(string(req.ProtoReflect().Descriptor().Name()), "Request")]
}

// PodID returns the id of a pod that a request or response has, "" if it has none.
func PodID(m proto.Message) string {
	if m, ok := m.(interface{ GetPodSandboxId() string }); ok {
		return m.GetPodSandboxId()
	}
	return ""
}

// ContainerID is the same for a container.
func ContainerID(m proto.Message) string {
	if m, ok := m.(interface{ GetContainerId() string }); ok {
		return m.GetContainerId()
	}
	return ""
}

// SetIDs sets the ids of a pod and a container where a message has such fields.
func SetIDs(m proto.Message, pod, container string) {
	for name, id := range map[protoreflect.Name]string{"pod_sandbox_id": pod, "container_id": container} {
		if field := m.ProtoReflect().Descriptor().Fields().ByName(name); field != nil {
			m.ProtoReflect().Set(field, protoreflect.ValueOfString(id))
		}
	}
}
