// Command koordinator is Koordinator v1.8.0 as a peer of tests: its published
// protocol types serve a hook server that answers as koordlet does, and its
// runtime proxy's own code says what koord-runtime-proxy would have sent to the
// runtime. It is a module of its own, so that the product requires none of it
// and no process registers the protocol twice.
//
// Usage:
//
//	koordinator descriptor     write the protocol's file descriptor
//	koordinator serve SOCKET   be a hook server
//	koordinator forward        read CRI requests as "METHOD BASE64" lines, answer each with the
//	                           base64 of what koord-runtime-proxy would forward with that hook server
package main

import (
	"fmt"
	"net"
	"os"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "koordinator:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "descriptor":
		return writeDescriptor()
	case len(args) == 2 && args[0] == "serve":
		return serve(args[1])
	case len(args) == 1 && args[0] == "forward":
		return forwardAll(os.Stdin, os.Stdout)
	}
	return fmt.Errorf("want descriptor, serve SOCKET or forward; got %q", args)
}

func writeDescriptor() error {
	file := (&hook.PodSandboxHookRequest{}).ProtoReflect().Descriptor().ParentFile()
	b, err := proto.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(b)
	return err
}

func serve(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	hook.RegisterRuntimeHookServiceServer(server, koordlet{})
	return server.Serve(listener)
}
