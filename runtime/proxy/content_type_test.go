package proxy_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// namedCodec is rawCodec for a caller that names a content subtype, or none.
type namedCodec struct {
	rawCodec
	name string
}

func (c namedCodec) Name() string { return c.name }

// expecting is a backend that refuses calls of any other content type, as CRI-O
// does with what is not exactly application/grpc.
func expecting(want string) func(method string, stream grpc.ServerStream) error {
	return func(_ string, stream grpc.ServerStream) error {
		got := metadata.ValueFromIncomingContext(stream.Context(), "content-type")
		if fmt.Sprint(got) != fmt.Sprint([]string{want}) {
			return status.Errorf(codes.InvalidArgument, "content-type is %q, want %q", got, want)
		}
		return echo("", stream)
	}
}

// TestContentType: every RPC reaches the backend with the content type that its
// caller sent, whether it passes, is observed or is changed.
func TestContentType(t *testing.T) {
	methods := methods(t)
	replace := func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		return next(context.WithoutCancel(ctx), new(cri.Frame))
	}
	for _, subtype := range []string{"", "proto", "anything"} {
		contentType := "application/grpc"
		if subtype != "" {
			contentType += "+" + subtype
		}
		for way, change := range map[string]func(*proxy.Options){
			"unhooked": func(*proxy.Options) {}, "observed": hookAll, "hooked": hookUnary(replace),
		} {
			t.Run(way+" "+contentType, func(t *testing.T) {
				conn := through(t, expecting(contentType), change)
				for method := range methods {
					stream, err := conn.NewStream(withTimeout(t, time.Minute), bidi, method, grpc.ForceCodecV2(namedCodec{name: subtype}))
					if err != nil {
						t.Fatal(err)
					}
					sendAll(stream, []byte{})
					stream.CloseSend()
					if answers, err := receiveAll(stream); err != nil || len(answers) != 1 {
						t.Errorf("%s: %d answers, %v", method, len(answers), err)
					}
				}
			})
		}
	}
}

// TestContentTypeOfOwnCalls: what the proxy itself asks has no subtype.
func TestContentTypeOfOwnCalls(t *testing.T) {
	path := socketPath(t)
	startBackend(t, path, expecting("application/grpc"))
	conn := dial(t, path)
	if err := conn.Invoke(withTimeout(t, time.Minute), version, new(cri.Frame), new(cri.Frame)); err != nil {
		t.Error(err)
	}
	stream, err := conn.NewStream(withTimeout(t, time.Minute), bidi, events)
	if err != nil {
		t.Fatal(err)
	}
	stream.CloseSend()
	if err := stream.RecvMsg(new(cri.Frame)); status.Code(err) == codes.InvalidArgument {
		t.Error(err)
	}
}
