package daemon_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// TestStatusHasThePeers: in both modes the status has the process at the other end of each connection, until it ends.
func TestStatusHasThePeers(t *testing.T) {
	for _, mode := range []string{config.ModeCRI, config.ModeDocker} {
		t.Run(mode, func(t *testing.T) {
			n := newNode(t)
			n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
			if n.config.Mode = mode; mode == config.ModeDocker {
				n.config.Backend = filepath.Join(n.dir, "docker.sock")
				socket, err := net.Listen("unix", n.config.Backend)
				n.must(err)
				docker := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") })}
				go docker.Serve(socket)
				defer docker.Close()
			}
			n.start(daemon.Run)
			n.awaitSocket()
			before := n.awaitPeer(func(of status.Peer) bool { return true }).Connections
			conn, err := net.Dial("unix", n.config.Listen)
			n.must(err)
			of := n.awaitPeer(func(of status.Peer) bool { return of.Connections == before+1 })
			if of.PID != os.Getpid() || of.UID != uint32(os.Geteuid()) || of.Program == "" || of.Since.IsZero() {
				t.Errorf("the peer is %+v", of)
			}
			conn.Close()
			n.awaitPeer(func(of status.Peer) bool { return of.Connections == before })
		})
	}
}

// awaitPeer waits until this process is the only peer, and as wanted. The zero peer stands for nobody.
func (n *node) awaitPeer(wanted func(status.Peer) bool) (of status.Peer) {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s, err := admin.Client{Socket: n.config.AdminSocket}.Status(n.t.Context())
		n.must(err)
		if len(s.Peers) == 0 && s.Peers != nil {
			of = status.Peer{}
		} else if len(s.Peers) == 1 {
			of = s.Peers[0]
		}
		if len(s.Peers) < 2 && wanted(of) {
			return of
		}
		if time.Now().After(end) {
			n.t.Fatalf("the peers are %+v", s.Peers)
		}
	}
}
