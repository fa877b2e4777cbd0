// Package hookserver serves Koordinator's RuntimeHookService in tests.
package hookserver

import (
	"context"
	"reflect"

	"google.golang.org/grpc"

	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// Register has g serve those of the protocol's methods that server has, such as
//
//	PreRunPodSandboxHook(context.Context, *pb.PodSandboxHookRequest) (*pb.PodSandboxHookResponse, error)
//
// The others are unimplemented.
func Register(g *grpc.Server, server any) {
	service := pb.File_runtime_remote_runtimehook_api_proto.Services().Get(0)
	desc := grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*any)(nil)}
	for i := range service.Methods().Len() {
		name := string(service.Methods().Get(i).Name())
		method := reflect.ValueOf(server).MethodByName(name)
		if !method.IsValid() {
			continue
		}
		desc.Methods = append(desc.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				req := reflect.New(method.Type().In(1).Elem())
				if err := decode(req.Interface()); err != nil {
					return nil, err
				}
				results := method.Call([]reflect.Value{reflect.ValueOf(ctx), req})
				err, _ := results[1].Interface().(error)
				return results[0].Interface(), err
			},
		})
	}
	g.RegisterService(&desc, server)
}
