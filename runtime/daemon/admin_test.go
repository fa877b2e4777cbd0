package daemon_test

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/status"
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

// A socket that something has removed, with its directory, is made again.
func TestSocketsAreMadeAgain(t *testing.T) {
	n := newNode(t)
	dir := filepath.Join(n.dir, "sockets")
	n.config.AdminSocket, n.config.StatusSocket = filepath.Join(dir, "admin.sock"), filepath.Join(dir, "status.sock")
	n.start(daemon.RunRetryingSoon)
	for _, c := range []admin.Client{{Socket: n.config.AdminSocket}, {Socket: n.config.StatusSocket, StatusOnly: true}} {
		answers := func() {
			t.Helper()
			_, err := c.Status(t.Context())
			for end := time.Now().Add(patience); err != nil; _, err = c.Status(t.Context()) { // no event says that it is there
				if time.Now().After(end) {
					t.Fatalf("%v; the log:\n%s", err, n.log)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		answers()
		n.must(os.RemoveAll(dir))
		n.await("socket not available, will retry", "socket="+c.Socket, `err="something has removed the socket"`)
		answers()
	}
}

// The status socket tells what status, plugin list and probes ask for, to the proxy's group as well, and changes
// nothing. It is there again after a restart, and ends with the proxy.
func TestStatusSocketOnlyTells(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket, n.config.StatusSocket = filepath.Join(n.dir, "admin.sock"), "unix://"+filepath.Join(n.dir, "status", "s")
	n.config.BypassFile = filepath.Join(n.dir, "bypass")
	n.put("20-quota.wasm", "quota")
	c := admin.Client{Socket: filepath.Join(n.dir, "status", "s"), StatusOnly: true}
	for range 2 {
		n.start(daemon.Run)
		n.awaitActive("20-quota")
		n.awaitSocket()
		all, err := c.Plugins(t.Context())
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); all, err = c.Plugins(t.Context()) { // no event says that it is there
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil || len(all.Plugins) != 1 || all.Plugins[0].State != status.Active {
			t.Errorf("the plugins are %+v, %v", all, err)
		}
		if info, err := os.Stat(c.Socket); err != nil || info.Mode() != fs.ModeSocket|0o660 {
			t.Errorf("the socket is %v, %v", info, err)
		}
		if s, err := c.Status(t.Context()); err != nil || s.PID != os.Getpid() {
			t.Errorf("the status is %+v, %v", s, err)
		}
		if _, err := c.Explain(t.Context(), "web"); err == nil {
			t.Error("it explains")
		}
		if _, err := c.Bypass(t.Context()); err == nil {
			t.Error("it has the resource of the bypass")
		}
		over := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", c.Socket) }}
		if is, text := n.get(over, "http://status/metrics"); is != http.StatusOK || !strings.Contains(text, "wasmproxy_plugin_info{") {
			t.Errorf("status %d, the metrics are %.80s", is, text)
		}
		for resource, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/debug/pprof/": 404, "/debug/pprof/profile": 404, "/": 404} {
			if is, _ := n.get(over, "http://status"+resource); is != want {
				t.Errorf("%s: status %d, want %d", resource, is, want)
			}
		}
		n.end()
		if _, err := os.Lstat(c.Socket); !os.IsNotExist(err) {
			t.Errorf("after the end: %v", err)
		}
	}
}

// A status socket that cannot be made is an event, and keeps neither calls nor the admin socket from being served.
func TestStatusSocketInUse(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket, n.config.StatusSocket = filepath.Join(n.dir, "admin.sock"), filepath.Join(n.dir, "file", "s")
	n.must(os.WriteFile(filepath.Join(n.dir, "file"), nil, 0o644))
	n.start(daemon.Run)
	n.await("status socket not available, will retry", "socket="+n.config.StatusSocket, "not a directory")
	n.awaitSocket()
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Error(err)
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

// Without plugins and their values the proxy knows of no pod, and says why.
func TestExplainWithoutPlugins(t *testing.T) {
	n, _, c := administered(t)
	n.remove("10-qos.wasm")
	n.remove("20-quota.wasm")
	n.await("no plugins active")
	_, err := c.Explain(t.Context(), "web")
	for end := time.Now().Add(patience); err == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // values are undone
		_, err = c.Explain(t.Context(), "web")
	}
	if err == nil || !strings.HasPrefix(err.Error(), "no plugin is loaded") {
		t.Error(err)
	}
}

// Values that CRI cannot clear are shown after the last plugin is removed, and after a restart
// without any.
func TestExplainValuesThatTheLastPluginLeft(t *testing.T) {
	n, _, c := administered(t)
	koordlet, err := os.ReadFile("../../plugins-wasm/koordlet/koordlet.wasm")
	n.must(err)
	n.remove("20-quota.wasm") // it sets the quota, too
	n.putRaw("30-koordlet.wasm", string(koordlet))
	n.awaitActive("10-qos", "30-koordlet")
	config := podNamed("pinned")
	config.Annotations = map[string]string{"scheduling.koordinator.sh/resource-status": `{"cpuset": "0-1"}`}
	pod, err := n.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	n.must(err)
	created, err := n.kubelet.CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.GetPodSandboxId(), SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	n.must(err)
	_, err = n.kubelet.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: created.GetContainerId()})
	n.must(err)
	for _, name := range []string{"10-qos.wasm", "30-koordlet.wasm"} {
		n.remove(name)
	}
	n.await("no plugins active")
	stays := func() bool {
		r, err := c.Explain(t.Context(), "test/pinned")
		n.must(err)
		return slices.ContainsFunc(r.Pods[0].Containers[0].Values, func(v explain.Value) bool {
			return v.Name == "cpuset_cpus" && v.State == explain.Stays && *v.Sent == "0-1"
		})
	}
	for end := time.Now().Add(patience); !stays(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the cpuset is not shown")
		}
	}
	n.end()
	n.start(daemon.Run)
	n.awaitSocket()
	if !stays() {
		t.Error("after a restart the cpuset is not shown")
	}
	if _, err := c.Explain(t.Context(), "pinnde"); err == nil || !strings.Contains(err.Error(), "names like it: test/pinned") {
		t.Error(err)
	}
	n.runtime.Stop()
	if _, err := c.Explain(t.Context(), "test/pinned"); err == nil || !strings.HasPrefix(err.Error(), "the container runtime does not tell of its pods: ") {
		t.Error(err)
	}
}

// TestExplainAfterIgnoredRecords: the reason for which owners are not known is told, with plugins and without.
func TestExplainAfterIgnoredRecords(t *testing.T) {
	n, _, c := administered(t)
	for _, step := range []struct{ state, remove, pod, reason string }{
		{`{"version":`, "10-qos.wasm", "", "line 1: unexpected end of JSON input"},
		{`{"version":2,"pod":"web"}`, "20-quota.wasm", "web", "line 1: its version is 2, and this version of wasmproxy reads 1"},
	} {
		n.end()
		n.must(os.WriteFile(filepath.Join(n.config.StateDir, "journal"), []byte(step.state+"\n"), 0o600))
		n.remove(step.remove)
		n.start(daemon.Run)
		n.awaitSocket()
		r, err := c.Explain(t.Context(), "test/web")
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // the store is filled
			r, err = c.Explain(t.Context(), "test/web")
		}
		n.must(err)
		if want := "a record in state-dir was ignored: " + step.reason; len(r.Pods) != 1 || r.Pods[0].Unowned != want {
			t.Fatalf("the proxy tells %+v, want %s", r.Pods, want)
		}
		s, err := c.Status(t.Context())
		n.must(err)
		if len(s.Values.Ignored) != 1 || s.Values.Ignored[step.pod] != step.reason {
			t.Errorf("the state is %+v, want %s of pod %q", s.Values, step.reason, step.pod)
		}
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
