package proxy_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// slow is a backend whose calls begin with a header and end when released.
type slow struct {
	begun   chan struct{}
	release chan struct{}
	ended   chan struct{}
}

func newSlow() slow {
	return slow{begun: make(chan struct{}, 8), release: make(chan struct{}), ended: make(chan struct{}, 8)}
}

func (s slow) serve(_ string, stream grpc.ServerStream) error {
	defer func() { s.ended <- struct{}{} }()
	s.begun <- struct{}{}
	select {
	case <-s.release:
		return sendAll(stream, []byte("finished"))
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// TestDrain: calls in flight finish, the event stream is ended at once, new
// callers find no socket.
func TestDrain(t *testing.T) {
	backend := newSlow()
	path, stop := startDraining(t, backend, time.Minute)
	conn := connect(t, path)
	answers := make(chan error, 2)
	for _, method := range []string{version, chat} {
		go func() {
			got, err := invoke(withTimeout(t, 2*time.Minute), conn, method, nil)
			if err == nil && string(got) != "finished" {
				err = errors.New("the answer is " + string(got))
			}
			answers <- err
		}()
		wait(t, backend.begun, "the call did not arrive")
	}
	stream := open(t, withTimeout(t, 2*time.Minute), conn, events)
	sendAll(stream, nil)
	wait(t, backend.begun, "the event stream did not open")

	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	_, err := receiveAll(stream)
	if got := status.Convert(err); got.Code() != codes.Unavailable || !strings.Contains(got.Message(), "stopping") {
		t.Errorf("the event stream ended with %v", err)
	}
	wait(t, backend.ended, "the backend's event stream did not end")
	gone(t, path)
	select {
	case err := <-stopped:
		t.Fatalf("Serve returned %v with calls in flight", err)
	case err := <-answers:
		t.Fatalf("a call in flight ended with %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(backend.release)
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("a call in flight ended with %v", err)
		}
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve returned %v", err)
	}
}

func gone(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there", path)
		}
	}
}

// TestDrainTimeout: what does not finish in time is cut, here and at the
// backend.
func TestDrainTimeout(t *testing.T) {
	backend := newSlow()
	path, stop := startDraining(t, backend, 200*time.Millisecond)
	conn := connect(t, path)
	answer := make(chan error, 1)
	go func() {
		_, err := invoke(withTimeout(t, 2*time.Minute), conn, version, nil)
		answer <- err
	}()
	wait(t, backend.begun, "the call did not arrive")
	if err := stop(); err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if err := <-answer; status.Code(err) != codes.Unavailable {
		t.Errorf("the call that was cut ended with %v", err)
	}
	wait(t, backend.ended, "the backend's call did not end")
}

func startDraining(t *testing.T, backend slow, timeout time.Duration) (path string, stop func() error) {
	t.Helper()
	at := socketPath(t)
	startBackend(t, at, backend.serve)
	return startProxy(t, proxy.Options{Backend: dial(t, at), DrainTimeout: timeout})
}

// TestListenerFails: Serve does not go on without a listener.
func TestListenerFails(t *testing.T) {
	l, err := net.Listen("unix", socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := proxy.New(proxy.Options{}).Serve(context.Background(), l); err == nil {
		t.Error("Serve returned no error")
	}
}

// failing is a listener that accepts one connection and then fails.
type failing struct {
	net.Listener
	accepted bool
	fail     chan struct{}
}

var errListener = errors.New("the listener failed")

func (f *failing) Accept() (net.Conn, error) {
	if f.accepted {
		<-f.fail
		return nil, errListener
	}
	f.accepted = true
	return f.Listener.Accept()
}

// Serve returns after its calls have ended, if the listener fails, too: who calls it
// then closes what calls use.
func TestServeOutlivesCallsWhenTheListenerFails(t *testing.T) {
	backend, up := newSlow(), socketPath(t)
	startBackend(t, up, backend.serve)
	path := socketPath(t)
	l := &failing{Listener: listen(t, path), fail: make(chan struct{})}
	s := proxy.New(proxy.Options{Backend: dial(t, up), DrainTimeout: time.Minute})
	served, answered := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), l) }()
	conn := connect(t, path)
	go func() {
		_, err := invoke(withTimeout(t, time.Minute), conn, version, nil)
		answered <- err
	}()
	wait(t, backend.begun, "the call did not arrive")
	close(l.fail)
	select {
	case err := <-served:
		t.Errorf("Serve returned %v while a call was in flight", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(backend.release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, errListener) {
		t.Errorf("Serve returned %v", err)
	}
}

// TestSilentConnectionAtShutdown: a caller that connects and says nothing does not delay the end.
func TestSilentConnectionAtShutdown(t *testing.T) {
	backend := newSlow()
	path, stop := startDraining(t, backend, 5*time.Minute)
	close(backend.release)
	silent, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := invoke(t.Context(), connect(t, path), version, nil); err != nil { // the connection before was accepted, too
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := stop(); err != nil {
			t.Errorf("Serve returned %v", err)
		}
	}()
	select {
	case <-stopped:
	case <-time.After(60 * time.Second):
		t.Fatal("the server has not ended after a minute")
	}
}

// lateListener accepts one connection, while the server closes it.
type lateListener struct {
	net.Listener
	conn   net.Conn
	stop   func()
	once   sync.Once
	closed chan struct{}
}

func (l *lateListener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, net.ErrClosed
	}
	conn := l.conn
	l.conn = nil
	l.stop()
	<-l.closed
	return conn, nil
}

func (l *lateListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// TestConnectionAtTheStop: a connection that the kernel has accepted when the server is told to stop is served, so that its
// caller is told to connect again.
func TestConnectionAtTheStop(t *testing.T) {
	theirs, ours := net.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	backend := socketPath(t)
	startBackend(t, backend, echo)
	s := proxy.New(proxy.Options{Backend: dial(t, backend), DrainTimeout: time.Minute})
	l := &lateListener{Listener: listen(t, socketPath(t)), conn: ours, stop: stop, closed: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	if err := theirs.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.WriteString(theirs, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	}() // HTTP/2's preface
	var frame [9]byte
	if _, err := io.ReadFull(theirs, frame[:]); err != nil || frame[3] != 4 {
		t.Errorf("the first frame is %q, want SETTINGS: %v", frame, err)
	}
	theirs.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
