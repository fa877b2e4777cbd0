// Command hookserver is the plugin that a remote hook is measured with: it speaks
// Koordinator's RuntimeHookService through Koordinator's own published types and changes
// nothing. On SIGTERM it prints how often its two hooks were called together, and ends.
//
// Usage: hookserver SOCKET
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"google.golang.org/grpc"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hookserver:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the path of the socket; got %d", len(args))
	}
	lis, err := net.Listen("unix", args[0])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	srv, hooks := grpc.NewServer(), &noop{}
	hook.RegisterRuntimeHookServiceServer(srv, hooks)
	context.AfterFunc(ctx, srv.Stop)
	err = srv.Serve(lis)
	fmt.Println(hooks.calls.Load())
	return err
}

// noop answers with an empty message: "leave it as it is".
type noop struct {
	hook.UnimplementedRuntimeHookServiceServer
	calls atomic.Int64
}

func (n *noop) PreRunPodSandboxHook(context.Context, *hook.PodSandboxHookRequest) (*hook.PodSandboxHookResponse, error) {
	n.calls.Add(1)
	return &hook.PodSandboxHookResponse{}, nil
}

func (n *noop) PreCreateContainerHook(context.Context, *hook.ContainerResourceHookRequest) (*hook.ContainerResourceHookResponse, error) {
	n.calls.Add(1)
	return &hook.ContainerResourceHookResponse{}, nil
}
