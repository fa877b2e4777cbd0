package daemon_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// ofAdmin asks the daemon's admin socket.
func (n *node) ofAdmin(resource string) (status int, body string) {
	n.t.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, "admin.sock"))
	}}}
	resp, err := client.Get("http://admin" + resource)
	n.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	n.must(err)
	return resp.StatusCode, string(text)
}

// awaitMetric waits until the metrics have a line.
func (n *node) awaitMetric(line string) {
	n.t.Helper()
	_, all := n.ofAdmin("/metrics")
	for end := time.Now().Add(patience); !strings.Contains("\n"+all, "\n"+line+"\n"); _, all = n.ofAdmin("/metrics") {
		if time.Now().After(end) {
			n.t.Fatalf("the metrics do not have %s:\n%s", line, all[strings.Index(all, "# HELP wasmproxy"):])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Metrics of a real daemon count calls and hooks, and tell its state.
func TestMetricsOnTheAdminSocket(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.awaitSocket()
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`wasmproxy_calls_total{code="OK",method="RunPodSandbox",route="followed"} 1`,
		`wasmproxy_call_duration_seconds_count{method="RunPodSandbox"} 1`,
		`wasmproxy_plugin_state{plugin="10-quota",state="active"} 1`,
		`wasmproxy_plugin_instances{plugin="10-quota"} 4`, // for one that is small: one, and three to spare
		`wasmproxy_plugin_breaker_open{plugin="10-quota"} 0`,
		`wasmproxy_plugin_loads_total{plugin="10-quota",result="loaded"} 1`,
		`wasmproxy_kubelet_connections 1`,
		`wasmproxy_backend_connected 1`,
		`wasmproxy_store_filled 1`,
		`wasmproxy_store_pods 1`,
		`wasmproxy_bypass 0`,
	} {
		n.awaitMetric(line)
	}
	n.remove("10-quota.wasm")
	n.await("plugin removed", "10-quota")
	if _, all := n.ofAdmin("/metrics"); strings.Contains(all, "10-quota") {
		t.Errorf("the removed plugin still has metrics:\n%s", all)
	}
}
