package proxy

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// unary passes one request up and one response down.
func unary(method string, down grpc.ServerStream, up grpc.ClientConnInterface) error {
	var req cri.Frame
	if err := receive(down, &req); err != nil {
		return err
	}
	defer req.Free()
	resp, err := invoke(outgoing(down.Context()), method, &req, down, up)
	if err != nil {
		return err
	}
	defer resp.Free()
	return down.SendMsg(resp)
}

// hooked lets intercept answer. It frees no frame: intercept may keep them.
func hooked(method string, down grpc.ServerStream, up grpc.ClientConnInterface, intercept cri.Interceptor) error {
	var req cri.Frame
	if err := receive(down, &req); err != nil {
		return err
	}
	resp, err := intercept(outgoing(down.Context()), &req, func(ctx context.Context, req *cri.Frame) (*cri.Frame, error) {
		return invoke(ctx, method, req, down, up)
	})
	if err != nil {
		return err
	}
	if resp == nil {
		return errNoResponse
	}
	return down.SendMsg(resp)
}

// receive does not wait for the caller to close its side, as a unary caller has
// nothing more to say and usually says so with the request.
func receive(down grpc.ServerStream, req *cri.Frame) error {
	err := down.RecvMsg(req)
	if errors.Is(err, io.EOF) {
		return errNoRequest
	}
	return err
}

// invoke calls the backend and hands its headers and trailers to down, those of
// a failed call too. The backend's status is the error, untouched.
func invoke(ctx context.Context, method string, req *cri.Frame, down grpc.ServerStream, up grpc.ClientConnInterface) (*cri.Frame, error) {
	var (
		resp            = new(cri.Frame)
		header, trailer metadata.MD
	)
	err := up.Invoke(ctx, method, req, resp, callOptions(down.Context(), grpc.Header(&header), grpc.Trailer(&trailer))...)
	// A header that gRPC refuses to send must not turn what the backend has
	// done into an error, so it is left out.
	_ = down.SetHeader(forwardable(header))
	down.SetTrailer(forwardable(trailer))
	if err != nil {
		return nil, err
	}
	return resp, nil
}
