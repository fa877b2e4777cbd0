package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

const (
	version    = "/runtime.v1.RuntimeService/Version"
	listImages = "/runtime.v1.ImageService/ListImages"
	events     = "/runtime.v1.RuntimeService/GetContainerEvents"
	chat       = "/future.v9.NotYetInvented/Chat"
)

var bidi = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}

// rawCodec carries *[]byte. It is the tests' witness on both sides of the
// proxy, and shares no code with it.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// socketPath returns a path in a directory of its own. t.TempDir is too long
// for a socket.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "cri.sock")
}

// startBackend serves every method at path by handler, until the test ends.
func startBackend(t testing.TB, path string, handler func(method string, stream grpc.ServerStream) error) *grpc.Server {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.MaxRecvMsgSize(128<<20), grpc.MaxSendMsgSize(128<<20),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			return handler(method, stream)
		}))
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return s
}

// startProxy serves by a proxy until the test ends or stop is called. stop
// returns what Serve returned.
func startProxy(t testing.TB, opts proxy.Options) (path string, stop func() error) {
	t.Helper()
	path = socketPath(t)
	l, err := proxy.Listen(context.Background(), path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Observer == nil {
		opts.Observer = observe.Discard()
	}
	return path, serve(t, proxy.New(opts), l)
}

func serve(t testing.TB, s *proxy.Server, l net.Listener) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- s.Serve(ctx, l)
		close(done)
	}()
	stop = func() error {
		cancel()
		return <-done
	}
	t.Cleanup(func() { stop() })
	return stop
}

// dial connects a proxy to a backend that is there.
func dial(t testing.TB, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := proxy.Dial("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ready(t, conn)
	return conn
}

// ready waits until there is a connection.
func ready(t testing.TB, conn *grpc.ClientConn) {
	t.Helper()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(withTimeout(t, time.Minute), state) {
			t.Fatalf("the connection to %s is %v", conn.Target(), state)
		}
	}
}

// connect is a caller of the proxy.
func connect(t testing.TB, path string, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+path, append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent("the-caller"),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(128<<20), grpc.MaxCallSendMsgSize(128<<20)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// through starts a backend, a proxy before it, and connects to that.
func through(t testing.TB, handler func(method string, stream grpc.ServerStream) error, change ...func(*proxy.Options)) *grpc.ClientConn {
	t.Helper()
	backend := socketPath(t)
	startBackend(t, backend, handler)
	opts := proxy.Options{Backend: dial(t, backend)}
	for _, c := range change {
		c(&opts)
	}
	path, _ := startProxy(t, opts)
	return connect(t, path)
}

func withTimeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func invoke(ctx context.Context, conn *grpc.ClientConn, method string, req []byte, opts ...grpc.CallOption) ([]byte, error) {
	var resp []byte
	err := conn.Invoke(ctx, method, &req, &resp, opts...)
	return resp, err
}

func open(t testing.TB, ctx context.Context, conn *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	stream, err := conn.NewStream(ctx, bidi, method)
	if err != nil {
		t.Fatalf("opening %s: %v", method, err)
	}
	return stream
}

type receiver interface{ RecvMsg(any) error }

type sender interface{ SendMsg(any) error }

// receiveAll returns what a stream carries, and nil if it ended with EOF.
func receiveAll(from receiver) (all [][]byte, _ error) {
	for {
		var b []byte
		err := from.RecvMsg(&b)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, b)
	}
}

func sendAll(to sender, messages ...[]byte) error {
	for _, m := range messages {
		if err := to.SendMsg(&m); err != nil {
			return err
		}
	}
	return nil
}

// echo answers with the messages it got.
func echo(_ string, stream grpc.ServerStream) error {
	for {
		var b []byte
		err := stream.RecvMsg(&b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&b); err != nil {
			return err
		}
	}
}

// route hooks one method.
func route(method string, intercept cri.Interceptor) func(*proxy.Options) {
	return func(opts *proxy.Options) {
		opts.Router = func(m string) cri.Interceptor {
			if m == method {
				return intercept
			}
			return nil
		}
	}
}

// relay copies bytes between from and to, and gives out its connections to to.
func relay(t testing.TB, from, to string, conns chan<- net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("unix", to)
			if err != nil {
				down.Close()
				continue
			}
			go pipe(up, down)
			go pipe(down, up)
			if conns != nil {
				conns <- up
			}
		}
	}()
}

func pipe(dst, src net.Conn) {
	defer dst.Close()
	// Without splice(2), which is slow for small messages.
	io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 64<<10))
}
