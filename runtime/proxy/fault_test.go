package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// TestBackendKilled kills the backend's process in the middle of a stream and
// of a unary call, and starts another.
func TestBackendKilled(t *testing.T) {
	backend := socketPath(t)
	process := start(t, "backend", backend)
	if !process.ready() {
		t.Fatal("the backend did not start")
	}
	path, _ := startProxy(t, proxy.Options{Backend: dial(t, backend)})
	conn := connect(t, path)

	stream := open(t, withTimeout(t, time.Minute), conn, events)
	var b []byte
	if err := stream.RecvMsg(&b); err != nil {
		t.Fatal(err)
	}
	unary := make(chan error, 1)
	go func() {
		_, err := invoke(withTimeout(t, time.Minute), conn, version, nil)
		unary <- err
	}()
	time.Sleep(100 * time.Millisecond)
	process.kill(t)
	if all, err := receiveAll(stream); status.Code(err) != codes.Unavailable {
		t.Errorf("after %d messages the stream ended with %v", len(all), err)
	}
	if err := <-unary; status.Code(err) != codes.Unavailable {
		t.Errorf("the unary call ended with %v", err)
	}

	start(t, "backend", backend)
	eventually(t, conn)
}

// TestBackendAbsent: the socket answers at once before there is a backend.
func TestBackendAbsent(t *testing.T) {
	backend := socketPath(t)
	up, err := proxy.Dial(backend)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	path, _ := startProxy(t, proxy.Options{Backend: up})
	conn := connect(t, path)
	for _, method := range []string{version, events, chat} {
		begin := time.Now()
		_, err := invoke(withTimeout(t, time.Minute), conn, method, nil)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), backend) {
			t.Errorf("%s: %v; want Unavailable and the backend's path", method, err)
		}
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%s: the answer took %v", method, d)
		}
	}
	startBackend(t, backend, echo)
	eventually(t, conn)
}

// eventually waits until calls are answered.
func eventually(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, err := invoke(withTimeout(t, time.Minute), conn, listImages, nil)
		if err == nil {
			return
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(deadline) {
			t.Fatalf("the backend is there, but: %v", err)
		}
	}
}

// TestNoRepeat: a call that failed because the connection broke is not made
// again.
func TestNoRepeat(t *testing.T) {
	var calls atomic.Int64
	cut := make(chan func(), 1)
	backend := socketPath(t)
	s := startBackend(t, backend, func(_ string, stream grpc.ServerStream) error {
		var b []byte
		if err := stream.RecvMsg(&b); err != nil {
			return err
		}
		calls.Add(1)
		(<-cut)()
		return nil
	})
	path, _ := startProxy(t, proxy.Options{Backend: dial(t, backend)})
	cut <- func() { go s.Stop() }
	conn := connect(t, path)
	_, err := invoke(withTimeout(t, time.Minute), conn, "/runtime.v1.RuntimeService/CreateContainer", nil)
	t.Log(err)
	close(cut)
	if n := calls.Load(); n != 1 {
		t.Errorf("the backend got %d calls", n)
	}
}

// brokenConn is a backend connection with a bug, which no real one can be told
// to have.
type brokenConn struct{ grpc.ClientConnInterface }

func (brokenConn) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	panic("secret value")
}

func (c brokenConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return brokenStream{stream}, err
}

type brokenStream struct{ grpc.ClientStream }

func (brokenStream) SendMsg(any) error { panic("secret value") }

// TestPanic: wherever it happens it is that call's Internal, logged with the
// stack.
func TestPanic(t *testing.T) {
	for name, change := range map[string]func(*proxy.Options){
		"interceptor": route(version, func(context.Context, *cri.Call, cri.Next) (*cri.Frame, error) { panic("secret value") }),
		"router":      func(opts *proxy.Options) { opts.Router = panicOn(version) },
		"unary":       func(opts *proxy.Options) { opts.Backend = brokenConn{opts.Backend} },
		"stream":      func(opts *proxy.Options) { opts.Backend = brokenConn{opts.Backend} },
	} {
		t.Run(name, func(t *testing.T) {
			var log buffer
			conn := through(t, echo, func(opts *proxy.Options) {
				opts.ImageBackend = opts.Backend
				opts.Observer = slogsink.New(slog.New(slog.NewTextHandler(&log, nil)))
				change(opts)
			})
			method := version
			if name == "stream" {
				method = chat
			}
			_, err := invoke(withTimeout(t, time.Minute), conn, method, nil)
			if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
				t.Errorf("the caller got %v", err)
			}
			if got := log.String(); !strings.Contains(got, method) || !strings.Contains(got, "secret value") || !strings.Contains(got, "fault_test.go") {
				t.Errorf("the log says %q, which lacks the method, the value or the stack", got)
			}
			if _, err := invoke(withTimeout(t, time.Minute), conn, listImages, nil); err != nil {
				t.Errorf("the next call got %v", err)
			}
		})
	}
}

func panicOn(method string) cri.Router {
	return func(m string) cri.Interceptor {
		if m == method {
			panic("secret value")
		}
		return nil
	}
}

// buffer may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestTransportBroken cuts the backend's connection between two messages.
func TestTransportBroken(t *testing.T) {
	backend := socketPath(t)
	conns := make(chan net.Conn, 1)
	relay(t, backend+"2", backend, conns)
	startBackend(t, backend, func(_ string, stream grpc.ServerStream) error {
		if err := sendAll(stream, []byte("one")); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	})
	path, _ := startProxy(t, proxy.Options{Backend: dial(t, backend+"2")})
	stream := open(t, withTimeout(t, time.Minute), connect(t, path), "/runtime.v1.RuntimeService/StreamContainers")
	var b []byte
	if err := stream.RecvMsg(&b); err != nil {
		t.Fatal(err)
	}
	(<-conns).Close()
	if err := stream.RecvMsg(&b); status.Code(err) != codes.Unavailable || errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}
