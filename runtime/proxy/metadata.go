package proxy

import (
	"context"
	"maps"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

const contentType = "application/grpc"

// frames makes a call to the backend carry *cri.Frame.
var frames = grpc.ForceCodecV2(cri.Codec{})

// callOptions returns the options of the call to the backend. It has the content
// type of the incoming call, whose context ctx is.
func callOptions(ctx context.Context) []grpc.CallOption {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "content-type") {
		// gRPC accepts "+" and ";" before the subtype, and sends "+".
		if subtype := strings.TrimPrefix(value, contentType); len(subtype) > 1 {
			return []grpc.CallOption{frames, grpc.CallContentSubtype(subtype[1:])}
		}
	}
	return nil // as dialled
}

// outgoing returns ctx, the context of an incoming call, with the caller's
// metadata as that of the call to the backend.
func outgoing(ctx context.Context) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	if md = forwardable(md); len(md) == 0 {
		return ctx
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// forwardable removes from md what belongs to one connection and not to the
// call. It changes md, which gRPC gives out as a copy, and returns it.
func forwardable(md metadata.MD) metadata.MD {
	maps.DeleteFunc(md, func(key string, _ []string) bool {
		switch key {
		case "content-type", "user-agent", "te", "host":
			return true
		}
		return strings.HasPrefix(key, ":") || strings.HasPrefix(key, "grpc-")
	})
	return md
}
