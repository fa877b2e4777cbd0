package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// proxyWith serves an admin socket on which a proxy has this status.
func proxyWith(t *testing.T, s *status.Status) *config.Config {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/admin.sock")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- admin.Serve(ctx, l, admin.Sources{Observer: observe.Discard(), Status: func(context.Context) (*status.Status, error) { return s, nil }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &config.Config{AdminSocket: dir + "/admin.sock"}
}

// units are what systemd says of units, by their names and the names of properties.
type units map[string]map[string]string

func (u units) show(_ context.Context, name string, _ ...string) (map[string]string, error) {
	return u[name], nil
}

// process are files of /proc of a process of root in the host's namespaces. A link's others replace them.
func process(id int, name string, others tree) tree {
	at := fmt.Sprintf("/proc/%d/", id)
	all := tree{
		at + "comm": name + "\n", at + "cmdline": "/usr/bin/" + name + "\x00--v=2\x00", at + "status": "Name:\tx\nUid:\t0\t0\t0\t0\n",
		at + "ns/pid": "-> pid:[1]", at + "root": "-> /",
	}
	for path, content := range others {
		all[at+path] = content
	}
	return all
}

// TestRunningKubelet: kubelet is the main process of its unit, or a process of root that sees the host. A process
// of another user or of a container that is called kubelet is not.
func TestRunningKubelet(t *testing.T) {
	decoys := process(1, "systemd", nil).
		with(process(3, "kubelet", tree{"status": "Name:\tkubelet\nUid:\t0\t1000\t0\t0\n"})).
		with(process(4, "kubelet", tree{"root": "-> /proc"})).
		with(process(5, "kubelet", tree{"ns/pid": "-> pid:[2]"})).
		with(process(6, "kubelet2", nil))
	for name, c := range map[string]struct {
		files tree
		units units
		id    int
		args  string
	}{
		"nobody's":           {id: 0},
		"a process of root":  {files: process(7, "kubelet", nil), id: 7, args: "--v=2"},
		"of its unit":        {files: process(7, "kubelet", nil).with(process(9, "kubelet", tree{"root": "-> /proc"})).with(tree{"/etc/systemd/system/kubelet.service": ""}), units: units{"kubelet.service": {"MainPID": "9"}}, id: 9, args: "--v=2"},
		"started by a shell": {files: process(7, "kubelet", nil).with(process(9, "sh", nil)).with(tree{"/etc/systemd/system/kubelet.service": ""}), units: units{"kubelet.service": {"MainPID": "9"}}, id: 7, args: "--v=2"},
		"by another name":    {files: process(9, "hyperkube", nil).with(tree{"/etc/systemd/system/kubelet.service": ""}), units: units{"kubelet.service": {"MainPID": "9"}}, id: 9, args: "--v=2"},
		"its unit has ended": {files: tree{"/etc/systemd/system/kubelet.service": ""}, units: units{"kubelet.service": {"MainPID": "0"}}, id: 0},
		"of RKE2":            {files: process(7, "kubelet", nil).with(process(9, "rke2", nil)).with(tree{"/usr/lib/systemd/system/rke2-agent.service": ""}), units: units{"rke2-agent.service": {"MainPID": "9"}}, id: 7, args: "--v=2"},
		"in k3s":             {files: process(9, "k3s-agent", nil).with(tree{"/etc/systemd/system/k3s-agent.service": ""}), units: units{"k3s-agent.service": {"MainPID": "9"}}, id: 9},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, decoys.with(c.files))
			h.Unit = c.units.show
			k := h.RunningKubelet(t.Context())
			if c.id == 0 && k != nil || c.id != 0 && (k == nil || k.ID != c.id) {
				t.Fatalf("kubelet is %+v, want process %d", k, c.id)
			}
			if k != nil && (c.args == "") != (k.Args == nil) {
				t.Errorf("its arguments are %q", k.Args)
			}
		})
	}
}

// TestNoKubeletOfTheHost: what the kernel says of processes that are called kubelet, of another user and with other
// process ids.
func TestNoKubeletOfTheHost(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root is needed to start a process as another user") // TestEnter fails in CI without it
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/kubelet", content, 0o755)); err != nil {
		t.Fatal(err)
	}
	h := &Host{Root: "/", Unit: units{}.show}
	for name, attr := range map[string]*syscall.SysProcAttr{
		"another user":          {Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
		"another pid namespace": {Cloneflags: syscall.CLONE_NEWPID},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), dir+"/kubelet", "1000")
			cmd.SysProcAttr = attr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			if got := h.Root.proc().file(cmd.Process.Pid, "comm"); got != "kubelet\n" {
				t.Fatalf("the process is called %q", got)
			}
			if k := h.RunningKubelet(t.Context()); k != nil {
				t.Errorf("kubelet is %+v", k)
			}
		})
	}
}

// TestCalls: kubelet is connected if it is among the proxy's peers, whoever else is; a process of another user that is called
// kubelet does not count.
func TestCalls(t *testing.T) {
	others := []status.Peer{{PID: 8, UID: 1000, Program: "kubelet"}, {PID: 9, Program: "crictl"}}
	for name, c := range map[string]struct {
		s    status.Status
		want bool
	}{
		"among others":   {status.Status{Connections: 3, Peers: append(others, status.Peer{PID: 7})}, true},
		"others":         {status.Status{Connections: 2, Peers: others}, false},
		"in a container": {status.Status{Connections: 1, Peers: []status.Peer{{PID: 8, Program: "kubelet"}}}, true},
		"nobody":         {status.Status{Peers: []status.Peer{}}, false},
	} {
		if got := (&Running{ID: 7}).Calls(&c.s); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		if got := (*Running)(nil).Calls(&c.s); got != c.want && name != "among others" {
			t.Errorf("%s: got %v for a kubelet that was not found", name, got)
		}
	}
}

// liveHost is this host with a kubelet of systemd's whose configuration is in a file of the test.
func liveHost(t *testing.T, of units, kubelet string) (h *Host, out interface{ String() string }, calls string) {
	t.Helper()
	h, out = newHost(t, tree{"/config.yaml": kubelet})
	h.KubeletConfig, h.Root, h.Unit = filepath.Join(string(h.Root), "config.yaml"), "/", of.show
	return h, out, fakeSystemctl(t, "")
}

// kubeletIs are units with a kubelet in this state. The process has to be given to be found.
func kubeletIs(active, sub string) units {
	return units{kubeletUnit: {"ActiveState": active, "SubState": sub, "Result": "exit-code", "ExecMainStatus": "1", "NRestarts": "7"}}
}

// TestUninstallAwaitsKubelet: kubelet is restarted unless it is not active, and then has to serve. One that does not is
// an error with what systemd says of it.
func TestUninstallAwaitsKubelet(t *testing.T) {
	const restart, reload = "daemon-reload\nrestart kubelet\n", "daemon-reload\n"
	for name, c := range map[string]struct {
		units       units
		code        int // of /healthz; 0: nobody listens
		calls, want string
	}{
		"it serves":         {kubeletIs("active", "running"), 200, restart, ""},
		"it is not healthy": {kubeletIs("active", "running"), 500, restart, "it answers 500 Internal Server Error on http://127.0.0.1:"},
		"it crashes":        {kubeletIs("activating", "auto-restart"), 0, restart, "kubelet.service is activating (auto-restart), result exit-code, exit status 1, restarted by systemd 7 times"},
		"it has failed":     {kubeletIs("failed", "failed"), 0, restart, "kubelet.service is failed"},
		"it is not active":  {kubeletIs("inactive", "dead"), 0, reload, ""},
		"there is none":     {units{}, 0, reload, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(c.code) }))
			defer server.Close()
			if c.code == 0 {
				server.Close()
			}
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			h, _, calls := liveHost(t, c.units, "healthzPort: "+port+"\n")
			p := &removal{host: h, consent: Consent{RestartKubelet: true}, record: &record{}, settings: proxyWith(t, &status.Status{Peers: []status.Peer{}})}
			err := p.leaveKubelet(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if got, err := os.ReadFile(calls); err != nil || string(got) != c.calls {
				t.Errorf("systemctl was called with\n%s%v", got, err)
			}
		})
	}
}

// TestKubeletWithoutHealthz: a kubelet whose port is 0 has to run for a while.
func TestKubeletWithoutHealthz(t *testing.T) {
	for name, c := range map[string]struct {
		started time.Time
		want    string
	}{
		"just now":  {time.Now().Add(time.Minute), "it has run for less than 10s"}, // however long this takes
		"a while":   {time.Now().Add(-time.Minute), ""},
		"not alive": {time.Time{}, "it does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree{configFile: "healthzPort: 0\n"}
			if !c.started.IsZero() {
				files = files.with(kubeletRuns(c.started))
			}
			h, _ := newHost(t, files)
			if err := (kubeletService{h}).serves(t.Context()); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestUninstallWithoutRestart: the service stays while kubelet uses the proxy. Other peers, such as crictl, do not count.
func TestUninstallWithoutRestart(t *testing.T) {
	kubelet, crictl := status.Peer{PID: 7, Program: "kubelet"}, status.Peer{PID: 9, Program: "crictl"}
	for name, c := range map[string]struct {
		files tree
		peers []status.Peer
		want  string
	}{
		"kubelet is connected":   {kubeletRuns(time.Now()), []status.Peer{kubelet, crictl}, "it still uses the proxy until it starts anew, so the service stays"},
		"another one is":         {kubeletRuns(time.Now()), []status.Peer{crictl}, ""},
		"nobody is":              {kubeletRuns(time.Now()), []status.Peer{}, ""},
		"kubelet is unknown":     {nil, []status.Peer{crictl}, `it was not found, and process 9, "crictl", still uses the proxy`},
		"kubelet's unit stopped": {tree{"/etc/systemd/system/kubelet.service": ""}, []status.Peer{crictl}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, c.files)
			p := &removal{host: h, record: &record{}, settings: proxyWith(t, &status.Status{Connections: len(c.peers), Peers: c.peers})}
			if err := p.leaveKubelet(t.Context()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestUninstallWithoutProxy: nobody knows who was connected to a proxy that does not run, so that kubelet must have
// started since its files changed.
func TestUninstallWithoutProxy(t *testing.T) {
	for name, c := range map[string]struct {
		started time.Time
		want    string
	}{
		"before": {time.Now().Add(-time.Hour), "it has not started anew since they changed (the proxy cannot be asked who is connected: "},
		"since":  {time.Now().Add(time.Hour), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, tree{configFile: kubeletConfig(containerd)}.with(kubeletRuns(c.started)))
			p := &removal{host: h, record: &record{}, settings: &config.Config{AdminSocket: t.TempDir() + "/admin.sock"}}
			if err := p.leaveKubelet(t.Context()); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestInstallAwaitsKubelet: another peer than kubelet is not enough, and the error has what systemd says of kubelet.
func TestInstallAwaitsKubelet(t *testing.T) {
	h, _, _ := liveHost(t, kubeletIs("activating", "auto-restart"), "")
	others := &status.Status{Connections: 1, Peers: []status.Peer{{PID: 1, UID: 1000, Program: "kubelet"}}}
	p := &installation{host: h, consent: Consent{RestartKubelet: true, NoRollback: true}, socket: ours, settings: proxyWith(t, others)}
	err := p.useEndpoint(t.Context())
	for _, want := range []string{"does not use the proxy at " + ours, "it is not among the peers", "kubelet.service is activating (auto-restart), result exit-code, exit status 1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if p.inUse(t.Context()) {
		t.Error("the proxy is in use by kubelet")
	}
}

// TestKubeletInAnotherProgram: this command restarts no k3s.
func TestKubeletInAnotherProgram(t *testing.T) {
	h, out := newHost(t, tree{"/etc/systemd/system/k3s.service": ""})
	calls := fakeSystemctl(t, "")
	h.Unit = units{}.show
	h.Root = "/"
	p := &installation{host: h, consent: Consent{RestartKubelet: true}, part: true}
	if err := p.useEndpoint(t.Context()); err != nil || !strings.Contains(out.String(), "which is not restarted by this command") {
		t.Errorf("error %v, it says %s", err, out)
	}
	if got, err := os.ReadFile(calls); err == nil {
		t.Errorf("systemctl was called with %s", got)
	}
}
