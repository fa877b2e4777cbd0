package daemon_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// unsteady accepts connections at path and lets end close each, until the test
// ends or stop is called. It counts them.
func unsteady(t *testing.T, path string, end func(net.Conn)) (count *atomic.Int64, stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			go func() {
				defer conn.Close()
				end(conn)
			}()
		}
	}()
	return count, func() { l.Close() }
}

// settings is an empty SETTINGS frame: the connection is up for a gRPC client.
var settings = []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}

// untilCall returns when the first call begins, as CRI-O's socket does with a
// content type that it does not take.
func untilCall(conn net.Conn) {
	conn.Write(settings)
	io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	for header := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, header); err != nil || header[3] == 1 { // HEADERS
			return
		}
		io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(header)>>8))
	}
}

// A backend that accepts connections and ends them makes the proxy neither spin nor
// fill its log, and is used as soon as it is sound.
func TestBackendThatAcceptsAndCloses(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"at once":             func(net.Conn) {},
		"when it is up":       func(conn net.Conn) { conn.Write(settings) },
		"with the first call": untilCall,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const window, connections, lines = 4 * time.Second, 40, 25
			n := newNode(t)
			n.config.Backend = n.dir + "/unsteady.sock"
			count, stop := unsteady(t, n.config.Backend, end)
			n.put("10-quota.wasm", "quota")
			n.start(daemon.Run)
			n.await("plugins active")
			time.Sleep(window)
			text := n.log.String()
			t.Logf("%d connections, %d lines in %v", count.Load(), strings.Count(text, "\n"), window)
			if got := count.Load(); got < 2 || got > connections {
				t.Errorf("%d connections in %v, want 2 to %d", got, window, connections)
			}
			if got := strings.Count(text, "\n"); got > lines {
				t.Errorf("%d lines of log in %v, want %d at most:\n%.5000s", got, window, lines, text)
			}
			if got := strings.Count(text, "failed to fill the store"); got != 1 {
				t.Errorf("%d lines about the store, want one", got)
			}
			stop()
			n.must(removed(n.config.Backend))
			n.runtime = fake.NewFakeRemoteRuntime()
			n.must(n.runtime.Start("unix://" + n.config.Backend))
			t.Cleanup(n.runtime.Stop)
			n.await("store filled")
		})
	}
}

// removed removes what may be gone.
func removed(path string) error {
	if err := os.Remove(path); !os.IsNotExist(err) {
		return err
	}
	return nil
}
