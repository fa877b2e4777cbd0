package daemon_test

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// systemd is told that the proxy serves, however many plugins are loaded before: otherwise it would end the proxy after
// TimeoutStartSec.
func TestReadyAfterManyPlugins(t *testing.T) {
	n := newNode(t)
	path := filepath.Join(n.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	n.must(err)
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	messages := make(chan string, 1000)
	go func() {
		b := make([]byte, 64<<10)
		for {
			size, err := conn.Read(b)
			if err != nil {
				return
			}
			messages <- string(b[:size])
		}
	}()
	n.put("10-noop.wasm", "noop")
	for i := range 100 {
		n.put(fmt.Sprintf("20-%d.json", i), `{"wasm-module": "10-noop.wasm"}`)
	}
	n.start(daemon.RunAwaitingPlugins)
	for end := time.After(patience); ; {
		select {
		case m := <-messages:
			if m == "READY=1" {
				return
			}
		case <-end:
			t.Fatalf("systemd was not told; the log:\n%s", n.log)
		}
	}
}
