package proxy

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

var unaryStream grpc.StreamDesc // one message either way

// unary passes one request up and one response down. backend is how long the backend had
// the call.
func unary(method string, down grpc.ServerStream, up grpc.ClientConnInterface) (backend time.Duration, err error) {
	var req cri.Frame
	if err := request(down, &req); err != nil {
		return 0, err
	}
	defer req.Free()
	answers, start := callerOf(down.Context()).answers, time.Now()
	resp, held, err := invoke(outgoing(down.Context()), method, &req, down, up, answers)
	backend = time.Since(start)
	if err != nil {
		return backend, err
	}
	defer resp.Free()
	return backend, sendAnswer(down, resp, answers, held)
}

// hookedCall is a call that an interceptor answers.
type hookedCall struct {
	cri.Call
	frame   cri.Frame     // the request
	backend time.Duration // that the backend had the call
	held    int64         // that the answer takes of the caller's share
}

// serve lets intercept answer. It frees no frame: intercept may keep them.
func (h *hookedCall) serve(method string, down grpc.ServerStream, up grpc.ClientConnInterface, intercept cri.Interceptor) error {
	h.Request = &h.frame
	if err := request(down, h.Request); err != nil {
		return err
	}
	answers := callerOf(down.Context()).answers
	defer func() { answers.give(h.held) }()
	resp, err := intercept(outgoing(down.Context()), &h.Call, func(ctx context.Context, req *cri.Frame) (resp *cri.Frame, err error) {
		start := time.Now()
		resp, h.held, err = invoke(ctx, method, req, down, up, answers)
		h.backend = time.Since(start)
		return resp, err
	})
	if err != nil {
		return err
	}
	if resp == nil {
		return errNoResponse
	}
	taken := h.held
	h.held = 0 // it is for sendAnswer to give back
	return sendAnswer(down, resp, answers, taken)
}

// request receives the one request. It does not wait for the caller to close its
// side, as a unary caller has nothing more to say and usually says so with the request.
func request(down grpc.ServerStream, req *cri.Frame) error {
	err := down.RecvMsg(req)
	if errors.Is(err, io.EOF) {
		return errNoRequest
	}
	return err
}

// invoke calls the backend and hands its headers and trailers to down, those of
// a failed call too. The backend's status is the error, untouched. held is what the
// answer takes of the caller's share.
func invoke(
	ctx context.Context, method string, req *cri.Frame,
	down grpc.ServerStream, conn grpc.ClientConnInterface, answers *share,
) (resp *cri.Frame, held int64, err error) {
	arrived := &arrival{came: make(chan struct{})}
	ctx = context.WithValue(ctx, arrivedKey{}, arrived)
	up, err := conn.NewStream(ctx, &unaryStream, method, callOptions(down.Context())...)
	if err != nil {
		return nil, 0, err
	}
	if err := up.SendMsg(req); err != nil && !errors.Is(err, io.EOF) { // of EOF the status is received
		return nil, 0, err
	}
	header, _ := up.Header() // once it is there the answer comes; an error is received, too
	if awaitRoom(ctx, answers, arrived.came) {
		held = maxAnswer
	}
	var size int64 // of nothing, if there is no answer
	answer := new(cri.Frame)
	if err = up.RecvMsg(answer); err == nil {
		resp, size = answer, counted(answer)
	}
	if size < held {
		answers.give(held - size)
		held = size
	}
	// A header that gRPC refuses to send must not turn what the backend has
	// done into an error, so it is left out.
	_ = down.SetHeader(forwardable(header))
	down.SetTrailer(forwardable(up.Trailer()))
	return resp, held, err
}
