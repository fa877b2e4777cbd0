package proxy

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// stream copies messages both ways until the backend ends the call. Each
// message is written before the next is read, so a side that does not read
// holds the other back.
func (s *Server) stream(method string, down grpc.ServerStream, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithCancelCause(outgoing(down.Context()))
	defer cancel(nil)
	if method == endless {
		go func() {
			select {
			case <-s.stopping:
				cancel(errStopping)
			case <-ctx.Done():
			}
		}()
	}
	up, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method, callOptions(down.Context())...)
	if err == nil {
		go s.requests(method, up, down, cancel)
		err = responses(down, up)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errStopping) || errors.Is(cause, errPanic) {
		return cause
	}
	return err
}

// requests copies what the caller sends. It ends no later than the call.
func (s *Server) requests(method string, up grpc.ClientStream, down grpc.ServerStream, cancel context.CancelCauseFunc) {
	defer func() {
		if r := recover(); r != nil {
			cancel(s.panicked(method, r))
		}
	}()
	for {
		var f cri.Frame
		err := down.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			_ = up.CloseSend() // a failure shows in responses
			return
		}
		if err != nil {
			cancel(err)
			return
		}
		err = up.SendMsg(&f)
		f.Free()
		if err != nil {
			return // the backend has ended the call: responses gets its status
		}
	}
}

// responses copies what the backend sends: header, messages, trailer, status.
func responses(down grpc.ServerStream, up grpc.ClientStream) error {
	// The header may come long before the first message. It is nil if the call
	// ended without one; then RecvMsg has the status.
	if header, _ := up.Header(); header != nil {
		if err := down.SendHeader(forwardable(header)); err != nil {
			return err
		}
	}
	answers := callerOf(down.Context()).answers
	for {
		var f cri.Frame
		if err := up.RecvMsg(&f); err != nil {
			down.SetTrailer(forwardable(up.Trailer()))
			if errors.Is(err, io.EOF) {
				return nil // RecvMsg says so only for the status OK
			}
			return err
		}
		err := sendAnswer(down, &f, answers, 0)
		f.Free()
		if err != nil {
			return err
		}
	}
}
