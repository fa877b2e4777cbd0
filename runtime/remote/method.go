package remote

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The hooks that the protocol has a method for, by what the method is sent.
var (
	podHooks       = abi.HookSetOf(abi.PreRunPodSandbox, abi.PostStopPodSandbox)
	containerHooks = abi.HookSetOf(
		abi.PreCreateContainer, abi.PreStartContainer, abi.PostStartContainer, abi.PostStopContainer, abi.PreUpdateContainerResources,
	)
)

// Hooks returns the hooks that the protocol has a method for.
func Hooks() abi.HookSet { return podHooks | containerHooks }

// invoke calls the method of a hook: it has the hook's name, with "Hook" behind it.
func (p *Plugin) invoke(ctx context.Context, hook abi.Hook, req, resp proto.Message) error {
	return p.conn.Invoke(ctx, "/runtime.v1alpha1.RuntimeHookService/"+hook.String()+"Hook", req, resp)
}
