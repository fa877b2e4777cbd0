package cri

import "context"

// Next sends req to the backend and returns the response or the backend's own
// status error, which must go on to the caller as it is. The backend's headers
// and trailers pass to the caller without the interceptor seeing them.
//
// The outgoing metadata is in the context that the Interceptor was given, so
// ctx must be that context or one made from it.
type Next func(ctx context.Context, req *Frame) (resp *Frame, err error)

// An Interceptor answers one unary call, usually by way of next. It may look at
// req, send another frame in its place, refuse the call with a status error
// instead of calling next, and look at the response. It calls next at most
// once: the proxy repeats no call.
//
// An Interceptor may keep req and the response after it has returned: nobody
// changes a frame. It must not free them. It runs concurrently with itself. A
// panic in it is the call's Internal error.
type Interceptor func(ctx context.Context, req *Frame, next Next) (*Frame, error)

// A Router picks the Interceptor for a method, named as on the wire
// ("/runtime.v1.RuntimeService/RunPodSandbox"), or nil to let its bytes pass.
// It is asked once per call, concurrently, and must answer at once. It must
// name an Interceptor for unary methods only.
type Router func(fullMethod string) Interceptor
