package cri

import (
	"context"
	"time"
)

// Next sends req to the backend and returns the response or the backend's own
// status error, which must go on to the caller as it is. The backend's headers
// and trailers pass to the caller without the interceptor seeing them.
//
// The outgoing metadata is in the context that the Interceptor was given, so
// ctx must be that context or one made from it.
type Next func(ctx context.Context, req *Frame) (resp *Frame, err error)

// Call is one unary call: its request, and what its [Interceptor] reports of it.
type Call struct {
	Request  *Frame
	Unseen   error         // why the request does not show all that it does, so that plugins cannot judge it; nil: it does
	Followed bool          // the store reads the call
	Hooked   bool          // plugins have a hook in it
	Plugins  time.Duration // that plugins took before the answer
}

// An Interceptor answers one unary call, usually by way of next. It may look at
// the request, send another frame in its place, refuse the call with a status error
// instead of calling next, and look at the response. It calls next at most
// once: the proxy repeats no call. It fills in the reports of the call.
//
// An Interceptor may keep the request and the response after it has returned: nobody
// changes a frame. It must not free them. It runs concurrently with itself. A
// panic in it is the call's Internal error.
type Interceptor func(ctx context.Context, call *Call, next Next) (*Frame, error)

// A Router picks the Interceptor for a method, named as on the wire
// ("/runtime.v1.RuntimeService/RunPodSandbox"), or nil to let its bytes pass.
// It is asked once per call, concurrently, and must answer at once. It must
// name an Interceptor for unary methods only.
type Router func(fullMethod string) Interceptor
