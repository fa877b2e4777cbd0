package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

// patience is how long the tests wait for what comes.
const patience = time.Minute

// lab is a wasmproxy, as a process of its own, before a runtime that the test controls.
type lab struct {
	t       *testing.T
	builder *artifact.Builder
	dir     string
	runtime *standIn
	proxy   *exec.Cmd
	admin   *http.Client
}

func newLab(t *testing.T) *lab {
	t.Helper()
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/dev/shm", "wp") // as /run of a node; and a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lab{t: t, builder: builder, dir: dir, runtime: newStandIn(filepath.Join(dir, "runtime.sock"), filepath.Join(dir, "cgroup"))}
	l.admin = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.path("admin.sock"))
	}}}
	for _, d := range []string{"plugins.d", "hooks", "cgroup", "state"} {
		l.must(os.Mkdir(l.path(d), 0o755))
	}
	l.must(builder.Proxy(t.Context(), dir))
	return l
}

func (l *lab) path(elem ...string) string { return filepath.Join(append([]string{l.dir}, elem...)...) }

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// put makes a file of a plugin directory appear whole.
func (l *lab) put(dir, name string, content []byte) {
	l.t.Helper()
	l.must(os.WriteFile(l.path("draft"), content, 0o644))
	l.must(os.Rename(l.path("draft"), l.path(dir, name)))
}

// plugin puts a module of the project, and its JSON unless that is empty, into the plugin directory.
func (l *lab) plugin(id, module, json string) {
	l.t.Helper()
	if json != "" {
		l.put("plugins.d", id+".json", []byte(json))
	}
	code, err := os.ReadFile(l.builder.ProjectFile(module))
	l.must(err)
	l.put("plugins.d", id+".wasm", code)
}

// start starts the runtime and wasmproxy, and waits for so many plugins to be active.
func (l *lab) start(plugins int) {
	l.t.Helper()
	l.must(l.runtime.start())
	l.t.Cleanup(func() { l.runtime.stop() })
	l.proxy = l.run("wasmproxy", "serve", "--listen", l.path("proxy.sock"), "--backend", l.runtime.socket, "--plugin-dir", l.path("plugins.d"),
		"--hook-dir", l.path("hooks"), "--cache-dir", l.path("cache"), "--state-dir", l.path("state"), "--data-dir", l.path("data"), "--admin-socket", l.path("admin.sock"),
		"--status-socket", l.path("status/s"), "--bypass-file", "", "--cgroup-root", l.path("cgroup"), "--cgroup-mode", "v2", "--log-format", "json")
	l.await("active plugins", func() error {
		m, err := l.metrics()
		if n := m.sum("wasmproxy_plugin_state", `state="active"`); err == nil && int(n) != plugins {
			err = fmt.Errorf("%v of %d plugins are active", n, plugins)
		}
		return err
	})
}

// run starts a program of the lab, which ends with the test.
func (l *lab) run(program string, args ...string) *exec.Cmd {
	l.t.Helper()
	log, err := os.Create(l.path(program + ".log"))
	l.must(err)
	cmd := exec.Command(l.path(program), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	l.must(cmd.Start())
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil && program == "wasmproxy" {
			l.t.Errorf("wasmproxy ended: %v", err)
		}
		log.Close()
		if said, err := os.ReadFile(log.Name()); l.t.Failed() {
			l.t.Logf("%s said (%v):\n%s", program, err, said[max(0, len(said)-4096):])
		}
	})
	return cmd
}

// await waits until f succeeds.
func (l *lab) await(what string, f func() error) {
	l.t.Helper()
	err := f()
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = f() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		l.t.Fatalf("%s: %v", what, err)
	}
}

// dial returns a client with a connection of its own.
func (l *lab) dial() cri.RuntimeServiceClient {
	l.t.Helper()
	conn, err := grpc.NewClient("unix://"+l.path("proxy.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	l.must(err)
	l.t.Cleanup(func() { conn.Close() })
	return cri.NewRuntimeServiceClient(conn)
}

// series are values of metrics by name with labels, as the proxy writes them.
type series map[string]float64

// metrics asks the admin socket.
func (l *lab) metrics() (series, error) {
	resp, err := l.admin.Get("http://admin/metrics")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("metrics: status %d: %s", resp.StatusCode, text)
	}
	all := series{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, value, ok := cutLast(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				all[name] = v
			}
		}
	}
	return all, err
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// sum adds the series of a metric that have this among their labels.
func (s series) sum(name, label string) (sum float64) {
	for key, v := range s {
		if strings.HasPrefix(key, name+"{") && strings.Contains(key, label) {
			sum += v
		}
	}
	return sum
}

// sample reads what must not grow: levels of the metrics, the process in /proc and the files.
func (l *lab) sample() (map[string]float64, error) {
	m, err := l.metrics()
	if err != nil {
		return nil, err
	}
	s := map[string]float64{}
	for name, metric := range map[string]string{
		"goroutines": "go_goroutines", "pods": "wasmproxy_store_pods", "containers": "wasmproxy_store_containers",
		"objects with values": "wasmproxy_ledger_objects", "values": "wasmproxy_ledger_values", "guests' memory": "wasmproxy_plugins_memory_bytes",
	} {
		v, ok := m[metric]
		if !ok {
			return nil, fmt.Errorf("there is no metric %s", metric)
		}
		s[name] = v
	}
	s["series of metrics"] = float64(len(m))
	rss, fds, err := inProc(l.proxy.Process.Pid)
	s["RSS"], s["file descriptors"] = rss, fds
	s["state-dir's files"], s["state-dir's bytes"] = size(l.path("state"))
	s["cache-dir's files"], s["cache-dir's bytes"] = size(l.path("cache"))
	return s, err
}

// inProc returns the resident memory in bytes and the number of open files of a process.
func inProc(pid int) (rss, fds float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := bytes.Cut(text, []byte("\nVmRSS:"))
	fields := bytes.Fields(after)
	if err == nil && len(fields) == 0 {
		err = errors.New("/proc has no VmRSS of wasmproxy")
	}
	if err != nil {
		return 0, 0, err
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	open, fdErr := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return kib * 1024, float64(len(open)), errors.Join(err, fdErr)
}

// size returns the number of files below a directory and their bytes. Files may go meanwhile.
func size(dir string) (files, bytes float64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			files, bytes = files+1, bytes+float64(info.Size())
		}
		return nil
	})
	return files, bytes
}
