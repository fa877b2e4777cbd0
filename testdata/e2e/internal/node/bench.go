package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// BenchProxy is a wasmproxy of a benchmark, with sockets of its own and the settings of a node: several can
// be before one runtime.
type BenchProxy struct {
	Endpoint string
	admin    string // socket
	proxy    Proxy
}

// StartBenchProxy starts wasmproxy with these plugins. When the test ends it is stopped if it is still
// running.
func StartBenchProxy(t testing.TB, name string, plugins ...Plugin) *BenchProxy {
	t.Helper()
	dir := filepath.Join("/run/wasmproxy", name) // a socket's path must be short
	b := &BenchProxy{Endpoint: "unix://" + dir + "/cri.sock", admin: dir + "/admin.sock", proxy: Proxy{PluginDir: dir + "/plugins.d", HookDir: dir + "/hooks"}}
	if err := errors.Join(os.MkdirAll(b.proxy.PluginDir, 0o755), os.Mkdir(b.proxy.HookDir, 0o755)); err != nil {
		t.Fatalf("making the directories of wasmproxy %s: %v", name, err)
	}
	for _, plugin := range plugins {
		b.proxy.Install(t, plugin)
	}
	cmd := exec.Command(isolation.Current().Program("wasmproxy"), "serve", "--listen", b.Endpoint, "--backend", RuntimeKind().Endpoint,
		"--plugin-dir", b.proxy.PluginDir, "--hook-dir", b.proxy.HookDir, "--cache-dir", dir+"/cache", "--state-dir", dir+"/state", "--data-dir", dir+"/data",
		"--admin-socket", b.admin, "--status-socket", dir+"/status/s", "--bypass-file", dir+"/bypass", "--log-format", "json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	p := startProcess(t, "wasmproxy-"+name, cmd)
	b.proxy.process = p
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stopping wasmproxy %s: %v", name, err)
		}
	})
	awaitCRI(t, b.Endpoint, p.alive)
	b.proxy.AwaitPlugins(t)
	return b
}

// Stop ends it and returns its account of what it served.
func (b *BenchProxy) Stop(t testing.TB) Served {
	t.Helper()
	return b.proxy.Stop(t)
}

// Own returns how long all unary calls so far were in the proxy, without the runtime's part. Its metrics say so.
func (b *BenchProxy) Own(t testing.TB) time.Duration {
	t.Helper()
	client := http.Client{Timeout: startTimeout, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", b.admin)
	}}}
	resp, err := client.Get("http://admin/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seconds float64
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, _ := strconv.ParseFloat(value, 64) // of comments there is none
		switch {
		case strings.HasPrefix(name, "wasmproxy_call_seconds_total"):
			seconds += v
		case strings.HasPrefix(name, "wasmproxy_backend_seconds_total"):
			seconds -= v
		}
	}
	if seconds <= 0 {
		t.Fatalf("the metrics say that calls were in the proxy for %v s", seconds)
	}
	return time.Duration(seconds * float64(time.Second))
}

// CPU returns the time that all of its threads have run so far: the first number of each thread's schedstat, in
// nanoseconds (Documentation/scheduler/sched-stats.rst). Go's runtime ends no thread.
func (b *BenchProxy) CPU(t testing.TB) (sum time.Duration) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", b.proxy.process.cmd.Process.Pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("the threads of wasmproxy: %q (%v)", files, err)
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(stat))[0], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sum += time.Duration(ns)
	}
	return sum
}
