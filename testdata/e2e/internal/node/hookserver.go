package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// HookServer is a running process that speaks Koordinator's RuntimeHookService
// and answers as koordlet does. What it writes over a pod is in the pod's
// annotation "overlay"; see runtime/remote/testdata/koordinator.
type HookServer struct {
	process *process
	socket  string
	starts  int
}

// StartHookServer starts a hook server. When the test ends it is killed if it is still running.
func StartHookServer(t testing.TB) *HookServer {
	t.Helper()
	s := &HookServer{socket: filepath.Join(t.TempDir(), "hook.sock")}
	s.Start(t)
	return s
}

// Start starts it, for the first time or again after Kill.
func (s *HookServer) Start(t testing.TB) {
	t.Helper()
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("removing the hook server's old socket: %v", err)
	}
	s.starts++
	cmd := exec.Command(isolation.Current().Program("koordinator"), "serve", s.socket)
	s.process = startProcess(t, fmt.Sprintf("hookserver-%d", s.starts), cmd)
	t.Cleanup(s.process.kill)
	Eventually(t, startTimeout, "the hook server listens", func() error {
		conn, err := net.Dial("unix", s.socket)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// AwaitConnection waits until wasmproxy is connected to it.
func (s *HookServer) AwaitConnection(t testing.TB) {
	t.Helper()
	Eventually(t, startTimeout, "wasmproxy connects to the hook server", func() error {
		sockets, err := os.ReadFile("/proc/net/unix")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(sockets)) { // Num RefCount Protocol Flags Type St Inode Path
			if at := strings.Fields(line); len(at) == 8 && at[7] == s.socket && at[5] == "03" { // SS_CONNECTED
				return nil
			}
		}
		return errors.New("nobody is")
	})
}

// Kill ends it without warning.
func (s *HookServer) Kill() { s.process.kill() }

// Endpoint is where it listens.
func (s *HookServer) Endpoint() string { return "unix://" + s.socket }

// Register tells wasmproxy of it, by a file of that name in hookserver.d, and
// waits until it takes part.
func (s *HookServer) Register(t testing.TB, proxy *Proxy, file, policy string, hooks ...string) {
	t.Helper()
	RegisterHookServer(t, proxy, s.Endpoint(), file, policy, hooks...)
}

// RegisterHookServer is Register for one that listens elsewhere.
func RegisterHookServer(t testing.TB, proxy *Proxy, endpoint, file, policy string, hooks ...string) {
	t.Helper()
	registration, err := json.Marshal(map[string]any{"remote-endpoint": endpoint, "failure-policy": policy, "runtime-hooks": hooks})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proxy.HookDir, file), registration, 0o644); err != nil {
		t.Fatalf("registering the hook server: %v", err)
	}
	proxy.AwaitPlugins(t)
}

// StartKoordlet starts koordlet's own hook server with the hooks that it has on
// by default, which registers itself with wasmproxy, and waits until it takes
// part. It writes cgroup files besides. When the test ends it is stopped.
func StartKoordlet(t testing.TB, proxy *Proxy) {
	t.Helper()
	cmd := exec.Command(isolation.Current().Program("koordlet"), filepath.Join(t.TempDir(), "koordlet.sock"), proxy.HookDir, "/sys/fs/cgroup")
	p := startProcess(t, "koordlet", cmd)
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stopping koordlet: %v", err)
		}
	})
	Eventually(t, startTimeout, "koordlet registers itself", func() error {
		if err := p.alive(); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(filepath.Join(proxy.HookDir, "koordlet.json"))
		return err
	})
	proxy.AwaitPlugins(t)
}
