package remote

import (
	"context"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/abi"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

type (
	client        = pb.RuntimeHookServiceClient
	podCall       func(client, context.Context, *pb.PodSandboxHookRequest, ...grpc.CallOption) (*pb.PodSandboxHookResponse, error)
	containerCall func(client, context.Context, *pb.ContainerResourceHookRequest, ...grpc.CallOption) (*pb.ContainerResourceHookResponse, error)
)

// podCalls and containerCalls are the protocol's seven methods, by hook.
var (
	podCalls = map[abi.Hook]podCall{
		abi.PreRunPodSandbox:   client.PreRunPodSandboxHook,
		abi.PostStopPodSandbox: client.PostStopPodSandboxHook,
	}
	containerCalls = map[abi.Hook]containerCall{
		abi.PreCreateContainer:          client.PreCreateContainerHook,
		abi.PreStartContainer:           client.PreStartContainerHook,
		abi.PostStartContainer:          client.PostStartContainerHook,
		abi.PostStopContainer:           client.PostStopContainerHook,
		abi.PreUpdateContainerResources: client.PreUpdateContainerResourcesHook,
	}
)

// Hooks returns the hooks that the protocol has a method for.
func Hooks() (all abi.HookSet) {
	for h := range podCalls {
		all |= abi.HookSetOf(h)
	}
	for h := range containerCalls {
		all |= abi.HookSetOf(h)
	}
	return all
}
