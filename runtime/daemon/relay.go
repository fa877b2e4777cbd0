package daemon

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
)

// relay is where calls go: to the container runtime, or to the process that has taken the place of
// this one, which knows the plugins. Callers that are still connected here notice no difference.
type relay struct {
	runtime   grpc.ClientConnInterface
	successor *atomic.Pointer[grpc.ClientConn] // nil inside: there is none
}

func (r relay) to() grpc.ClientConnInterface {
	if s := r.successor.Load(); s != nil {
		return s
	}
	return r.runtime
}

// Invoke implements grpc.ClientConnInterface.
func (r relay) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	return r.to().Invoke(ctx, method, req, resp, opts...)
}

// NewStream implements grpc.ClientConnInterface.
func (r relay) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return r.to().NewStream(ctx, desc, method, opts...)
}
