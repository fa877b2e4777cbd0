package proxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// hookAll is a router that hooks every unary method with an interceptor that
// changes nothing.
func hookAll(opts *proxy.Options) {
	hookUnary(func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		return next(ctx, call.Request)
	})(opts)
}

// hookUnary hooks every unary method.
func hookUnary(intercept cri.Interceptor) func(*proxy.Options) {
	shapes := cri.Shapes()
	return func(opts *proxy.Options) {
		opts.Router = func(method string) cri.Interceptor {
			if shapes[method] != cri.Unary {
				return nil
			}
			return intercept
		}
	}
}

// everyWay runs f on a unary method that passes, one that is hooked, and on a
// stream.
func everyWay(t *testing.T, handler func(method string, stream grpc.ServerStream) error, f func(t *testing.T, conn *grpc.ClientConn, method string)) {
	t.Helper()
	unhooked, hooked := through(t, handler), through(t, handler, hookAll)
	t.Run("unary", func(t *testing.T) { f(t, unhooked, version) })
	t.Run("hooked", func(t *testing.T) { f(t, hooked, version) })
	t.Run("stream", func(t *testing.T) { f(t, unhooked, chat) })
}

func TestMetadata(t *testing.T) {
	sent := metadata.MD{
		"traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"baggage":     {"a=1,b=2"},
		"custom":      {"one", "two", "one"},
		"custom-bin":  {"\x00\xff\xfe", "", "second"},
	}
	header := metadata.MD{"h": {"1", "2"}, "h-bin": {"\x01\xff"}}
	trailer := metadata.MD{"t": {"3", "3"}, "t-bin": {"\xfe\x00"}}
	got := make(chan metadata.MD, 1)
	handler := func(_ string, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		got <- md
		stream.SetTrailer(trailer)
		if err := stream.SendHeader(header); err != nil {
			return err
		}
		return echo("", stream)
	}
	everyWay(t, handler, func(t *testing.T, conn *grpc.ClientConn, method string) {
		var h, tr metadata.MD
		ctx := metadata.NewOutgoingContext(withTimeout(t, time.Minute), sent)
		if _, err := invoke(ctx, conn, method, nil, grpc.Header(&h), grpc.Trailer(&tr)); err != nil {
			t.Fatal(err)
		}
		incoming := <-got
		if want := []string{"localhost"}; !cmp.Equal(incoming[":authority"], want) {
			t.Errorf(":authority is %q, want %q", incoming[":authority"], want)
		}
		if ua := incoming["user-agent"]; len(ua) != 1 || ua[0] == "the-caller" {
			t.Errorf("user-agent is %q: that is the caller's own connection", ua)
		}
		if diff := cmp.Diff(sent, without(incoming)); diff != "" {
			t.Errorf("metadata changed (-sent +received):\n%s", diff)
		}
		if diff := cmp.Diff(header, without(h)); diff != "" {
			t.Errorf("header changed (-sent +received):\n%s", diff)
		}
		if diff := cmp.Diff(trailer, without(tr)); diff != "" {
			t.Errorf("trailer changed (-sent +received):\n%s", diff)
		}
	})
}

// without leaves out what gRPC itself adds on every connection.
func without(md metadata.MD) metadata.MD {
	for _, key := range []string{":authority", "content-type", "user-agent", "grpc-accept-encoding"} {
		delete(md, key)
	}
	return md
}

// TestReservedMetadata sends what a caller's library may send by itself and
// must not reach the backend.
func TestReservedMetadata(t *testing.T) {
	got := make(chan metadata.MD, 1)
	handler := func(_ string, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		got <- md
		return echo("", stream)
	}
	everyWay(t, handler, func(t *testing.T, conn *grpc.ClientConn, method string) {
		ctx := metadata.AppendToOutgoingContext(withTimeout(t, time.Minute),
			"grpc-previous-rpc-attempts", "3", "grpc-trace-bin", "x", "grpc-tags-bin", "y")
		if _, err := invoke(ctx, conn, method, nil); err != nil {
			t.Fatal(err)
		}
		if md := without(<-got); len(md) != 0 {
			t.Errorf("the backend got %v", md)
		}
	})
}

// TestHeaderFirst: the header of a stream arrives before there is any message.
func TestHeaderFirst(t *testing.T) {
	release := make(chan struct{})
	conn := through(t, func(_ string, stream grpc.ServerStream) error {
		if err := stream.SendHeader(metadata.Pairs("early", "yes")); err != nil {
			return err
		}
		<-release
		return sendAll(stream, []byte("late"))
	})
	stream := open(t, withTimeout(t, time.Minute), conn, events)
	header, err := stream.Header()
	if err != nil || !cmp.Equal(header["early"], []string{"yes"}) {
		t.Errorf("header is %v, %v", header, err)
	}
	close(release)
	if all, err := receiveAll(stream); err != nil || len(all) != 1 {
		t.Errorf("messages are %q, %v", all, err)
	}
}

func TestDeadline(t *testing.T) {
	left := make(chan time.Duration, 1)
	handler := func(_ string, stream grpc.ServerStream) error {
		deadline, ok := stream.Context().Deadline()
		if !ok {
			left <- -1
		} else {
			left <- time.Until(deadline)
		}
		return echo("", stream)
	}
	everyWay(t, handler, func(t *testing.T, conn *grpc.ClientConn, method string) {
		if _, err := invoke(context.Background(), conn, method, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-left; got != -1 {
			t.Errorf("the caller set no deadline, the backend has %v left", got)
		}
		if _, err := invoke(withTimeout(t, time.Hour), conn, method, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-left; got > time.Hour || got < time.Hour-time.Minute {
			t.Errorf("of the caller's hour the backend has %v left", got)
		}
	})
}

// TestDeadlinePasses: the backend notices as well as the caller.
func TestDeadlinePasses(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	everyWay(t, hang(begun, ended), func(t *testing.T, conn *grpc.ClientConn, method string) {
		ready(t, conn) // the caller's two seconds are the call's alone
		_, err := invoke(withTimeout(t, 2*time.Second), conn, method, nil)
		wait(t, begun, "the call did not reach the backend in time")
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the caller got %v", err)
		}
		wait(t, ended, "the backend's call did not end")
	})
}

func TestCancel(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	everyWay(t, hang(begun, ended), func(t *testing.T, conn *grpc.ClientConn, method string) {
		ctx, cancel := context.WithCancel(withTimeout(t, time.Minute))
		go func() {
			<-begun
			cancel()
		}()
		if _, err := invoke(ctx, conn, method, nil); status.Code(err) != codes.Canceled {
			t.Errorf("the caller got %v", err)
		}
		wait(t, ended, "the backend's call was not cancelled")
	})
}

// hang handles calls by waiting for their end.
func hang(begun, ended chan<- struct{}) func(string, grpc.ServerStream) error {
	return func(_ string, stream grpc.ServerStream) error {
		begun <- struct{}{}
		<-stream.Context().Done()
		ended <- struct{}{}
		return stream.Context().Err()
	}
}

func wait(t *testing.T, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatal(otherwise)
	}
}
