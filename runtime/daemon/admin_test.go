package daemon_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

// administered is withFiles with an admin socket.
func administered(t *testing.T) (n *node, idle string, c admin.Client) {
	t.Helper()
	n = newNode(t)
	n.config.AdminSocket = "unix://" + filepath.Join(n.dir, "admin.sock")
	idle = n.runIdle()
	n.awaitSocket()
	return n, idle, admin.Client{Socket: filepath.Join(n.dir, "admin.sock")}
}

// awaitSocket waits until the admin socket is there, which no event says.
func (n *node) awaitSocket() {
	n.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(n.dir, "admin.sock"))
	for end := time.Now().Add(patience); err != nil; conn, err = net.Dial("unix", filepath.Join(n.dir, "admin.sock")) {
		if time.Now().After(end) {
			n.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	conn.Close()
}

// idleTold is what the proxy tells of cpu.idle of the node's container.
func (n *node) idleTold(c admin.Client) explain.Value {
	n.t.Helper()
	r, err := c.Explain(n.t.Context(), "test/web/app")
	n.must(err)
	for _, v := range r.Pods[0].Containers[0].Values {
		if v.Kind == explain.File && v.Name == "cpu.idle" {
			return v
		}
	}
	return explain.Value{}
}

// The proxy tells on the admin socket, which only its user can open, what a plugin has set;
// after a restart too, also if a process that was killed has left the socket there.
func TestAdminSocketExplains(t *testing.T) {
	n, idle, c := administered(t)
	if info, err := os.Stat(c.Socket); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket is %v, %v", info, err)
	}
	v := n.idleTold(c)
	if v.Owner != "10-qos" || *v.Kubelet != "0" || *v.Kernel != "1" || v.State != "" || time.Since(v.Wishes[0].Since) > time.Hour {
		t.Errorf("the proxy tells %+v", v)
	}
	n.end()
	if _, err := os.Lstat(c.Socket); !os.IsNotExist(err) {
		t.Errorf("after the end: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	n.must(err)
	l.SetUnlinkOnClose(false)
	n.must(l.Close())
	n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
	n.start(daemon.Run)
	n.await("cgroup file repaired", "file=cpu.idle")
	n.awaitSocket()
	if again := n.idleTold(c); again.Owner != "10-qos" || *again.Kernel != "1" || again.Repairs != 1 || again.Found != "0" || !again.Wishes[0].Since.Equal(v.Wishes[0].Since) {
		t.Errorf("after a restart the proxy tells %+v", again)
	}
}

// A socket that cannot be made keeps no call from being served, and is an event.
func TestAdminSocketInUse(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	l, err := net.Listen("unix", n.config.AdminSocket)
	n.must(err)
	defer l.Close()
	n.start(daemon.Run)
	n.await("admin socket not available, will retry", "socket="+n.config.AdminSocket, "another process listens there")
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Error(err)
	}
}

// Without plugins the proxy knows of no pod, and says why.
func TestExplainWithoutPlugins(t *testing.T) {
	n, _, c := administered(t)
	n.remove("10-qos.wasm")
	n.remove("20-quota.wasm")
	n.await("no plugins active")
	if _, err := c.Explain(t.Context(), "web"); err == nil || !strings.HasPrefix(err.Error(), "no plugin is loaded") {
		t.Error(err)
	}
}

// As long as the store is not filled, a pod that is not found may be there.
func TestExplainBeforeTheStoreIsFilled(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.put("20-quota.wasm", "quota")
	n.runtime.Stop()
	n.start(daemon.Run)
	n.await("failed to fill the store")
	n.awaitSocket()
	if _, err := (admin.Client{Socket: n.config.AdminSocket}).Explain(t.Context(), "web"); err == nil || !strings.HasPrefix(err.Error(), "the proxy has not read the pods of the container runtime yet; ") {
		t.Error(err)
	}
}
