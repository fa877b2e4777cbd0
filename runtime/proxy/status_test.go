package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// TestStatus sends every code, with a message that needs escaping, details of
// types that nobody knows, and headers and trailers beside it.
func TestStatus(t *testing.T) {
	want := make(chan *spb.Status, 1)
	handler := func(_ string, stream grpc.ServerStream) error {
		stream.SetHeader(metadata.Pairs("h", "1"))
		stream.SetTrailer(metadata.Pairs("t", "2"))
		return status.FromProto(<-want).Err()
	}
	everyWay(t, handler, func(t *testing.T, conn *grpc.ClientConn, method string) {
		for code := codes.Canceled; code <= codes.Unauthenticated+3; code++ {
			sent := &spb.Status{
				Code:    int32(code),
				Message: fmt.Sprintf("RegistryUnavailable: code %d\n100%% ünïcode \x01", code),
				Details: []*anypb.Any{
					{TypeUrl: "type.nobody.knows/at.all", Value: []byte{0xff, 0, byte(code)}},
					{TypeUrl: "", Value: []byte("no type")},
				},
			}
			want <- sent
			var header, trailer metadata.MD
			_, err := invoke(withTimeout(t, time.Minute), conn, method, nil, grpc.Header(&header), grpc.Trailer(&trailer))
			if diff := cmp.Diff(sent, status.Convert(err).Proto(), protocmp.Transform()); diff != "" {
				t.Errorf("status changed (-sent +received):\n%s", diff)
			}
			if h, tr := header["h"], trailer["t"]; !cmp.Equal(h, []string{"1"}) || !cmp.Equal(tr, []string{"2"}) {
				t.Errorf("beside the status are header %v and trailer %v", header, trailer)
			}
		}
	})
}

// TestStatusAlone: a status without header or details stays so, which is how a
// caller finds out that a method is not implemented.
func TestStatusAlone(t *testing.T) {
	handler := func(method string, _ grpc.ServerStream) error {
		return status.Error(codes.Unimplemented, "unknown method "+method)
	}
	everyWay(t, handler, func(t *testing.T, conn *grpc.ClientConn, method string) {
		stream := open(t, withTimeout(t, time.Minute), conn, method)
		// EOF says that the status is here before the request was sent.
		if err := sendAll(stream, nil); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if header, _ := stream.Header(); header != nil {
			t.Errorf("header %v came from nowhere", header)
		}
		_, err := receiveAll(stream)
		want := &spb.Status{Code: int32(codes.Unimplemented), Message: "unknown method " + method}
		if diff := cmp.Diff(want, status.Convert(err).Proto(), protocmp.Transform()); diff != "" {
			t.Errorf("status changed (-sent +received):\n%s", diff)
		}
	})
}

// TestStatusAfterMessages: a stream that fails half-way brings its messages and
// then its status, never EOF.
func TestStatusAfterMessages(t *testing.T) {
	conn := through(t, func(_ string, stream grpc.ServerStream) error {
		if err := sendAll(stream, []byte("one"), []byte("two")); err != nil {
			return err
		}
		return status.Error(codes.DataLoss, "the rest is gone")
	})
	for _, method := range []string{"/runtime.v1.RuntimeService/StreamContainers", chat} {
		all, err := receiveAll(open(t, withTimeout(t, time.Minute), conn, method))
		if got := status.Convert(err); len(all) != 2 || got.Code() != codes.DataLoss || got.Message() != "the rest is gone" {
			t.Errorf("%s gave %q and %v", method, all, err)
		}
	}
}

// TestInterceptorStatus: an interceptor may refuse a call, and the backend
// never hears of it.
func TestInterceptorStatus(t *testing.T) {
	refusal := status.Error(codes.FailedPrecondition, "plugin 10-no: PreRunPodSandbox: no")
	for name, tc := range map[string]struct {
		intercept cri.Interceptor
		want      codes.Code
	}{
		"refuses": {func(context.Context, *cri.Call, cri.Next) (*cri.Frame, error) { return nil, refusal }, codes.FailedPrecondition},
		"nothing": {func(context.Context, *cri.Call, cri.Next) (*cri.Frame, error) { return nil, nil }, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			conn := through(t, func(string, grpc.ServerStream) error {
				t.Error("the backend was called")
				return nil
			}, route(version, tc.intercept))
			if _, err := invoke(withTimeout(t, time.Minute), conn, version, nil); status.Code(err) != tc.want {
				t.Errorf("the caller got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestNoRequest: a caller that closes its side without a request gets an
// answer.
func TestNoRequest(t *testing.T) {
	everyWay(t, func(_ string, stream grpc.ServerStream) error { return status.Error(codes.Internal, "empty") },
		func(t *testing.T, conn *grpc.ClientConn, method string) {
			stream := open(t, withTimeout(t, time.Minute), conn, method)
			stream.CloseSend()
			if _, err := receiveAll(stream); status.Code(err) != codes.Internal {
				t.Errorf("the caller got %v", err)
			}
		})
}
