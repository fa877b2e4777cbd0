package proxy

import (
	"context"
	"fmt"
	"runtime/debug"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// The statuses that are the proxy's own. All others are the backend's, an
// interceptor's, or gRPC's (Unavailable when there is no backend).
var (
	errStopping   = status.Error(codes.Unavailable, "wasmproxy is stopping")
	errNoRequest  = status.Error(codes.Internal, "wasmproxy received no request message")
	errCompressed = status.Error(codes.Unimplemented, "wasmproxy takes no compressed messages: turn gRPC compression off at the caller")
	errNoResponse = status.Error(codes.Internal, "wasmproxy: interceptor gave neither response nor error")
	errPanic      = status.Error(codes.Internal, observe.PanickedAnswer)
)

// panicked tells of a panic with the stack of the goroutine that it is called on,
// and returns the status of the call. The panic's value stays in the log.
func (s *Server) panicked(method string, value any) error {
	s.opts.Observer.Observe(context.Background(), &observe.Panicked{
		During: "a call", Method: method, Panic: fmt.Sprint(value), Stack: string(debug.Stack()),
	})
	return errPanic
}
