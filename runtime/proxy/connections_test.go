package proxy_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// Connections are those that are open.
func TestConnections(t *testing.T) {
	backend := socketPath(t)
	startBackend(t, backend, echo)
	s := proxy.New(proxy.Options{Backend: dial(t, backend)})
	path := socketPath(t)
	serve(t, s, listen(t, path))
	if n := s.Connections(); n != 0 {
		t.Errorf("%d connections before the first", n)
	}
	first, second := connect(t, path), connect(t, path)
	for _, conn := range []*grpc.ClientConn{first, second} {
		if _, err := invoke(withTimeout(t, 10*time.Second), conn, version, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	first.Close()
	for end := time.Now().Add(10 * time.Second); s.Connections() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections after one was closed, want 1", s.Connections())
		}
	}
}
