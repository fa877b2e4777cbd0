package daemon_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe/metrics"
)

// ofAdmin asks the daemon's admin socket.
func (n *node) ofAdmin(resource string) (status int, body string) {
	n.t.Helper()
	return n.get(&http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.dir, "admin.sock"))
	}}, "http://admin"+resource)
}

func (n *node) get(over http.RoundTripper, url string) (status int, body string) {
	n.t.Helper()
	client := http.Client{Timeout: patience, Transport: over}
	resp, err := client.Get(url)
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
		`wasmproxy_ready 1`, `wasmproxy_state_saved 1`, `wasmproxy_ledger_values_not_held{plugin="10-quota"} 0`,
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

// The metrics say which version of a plugin is active, by the digests that sha256sum prints: also of a JSON that changes
// no more than who is asked, and not of files that cannot be loaded.
func TestPluginInfo(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	module, err := os.ReadFile("../../testdata/wat/quota.wasm")
	n.must(err)
	info := func(settings string) string {
		digest := ""
		if settings != "" {
			digest = fmt.Sprintf("%x", sha256.Sum256([]byte(settings)))
		}
		return fmt.Sprintf(`wasmproxy_plugin_info{digest="%x",kind="wasm",plugin="10-quota",settings_digest=%q,version="1.0.0"} 1`, sha256.Sum256(module), digest)
	}
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.awaitSocket()
	n.awaitMetric(info(""))
	const narrow = `{"match": {"namespaces": ["shop"]}}`
	n.put("10-quota.json", narrow)
	n.awaitMetric(info(narrow))
	n.awaitMetric(`wasmproxy_plugin_load_failed{plugin="10-quota"} 0`)
	n.put("10-quota.wasm", "missing-hook")
	n.awaitMetric(`wasmproxy_plugin_load_failed{plugin="10-quota"} 1`)
	n.awaitMetric(info(narrow))
}

// metricsAddress waits until the daemon serves metrics, and returns where.
func (n *node) metricsAddress() string {
	n.t.Helper()
	n.await("serving metrics")
	_, after, _ := strings.Cut(n.log.String(), "serving metrics\" address=")
	address, _, _ := strings.Cut(after, "\n")
	return address
}

// On the TCP address there are metrics and health alone.
func TestMetricsListen(t *testing.T) {
	n := newNode(t)
	n.config.MetricsListen = "127.0.0.1:0"
	n.start(daemon.Run)
	url := "http://" + n.metricsAddress()
	for resource, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/explain?name=web": 404, "/debug/pprof/": 404, "/debug/pprof/heap": 404, "/": 404,
	} {
		if got, body := n.get(http.DefaultTransport, url+resource); got != want {
			t.Errorf("%s: status %d, want %d: %s", resource, got, want, body)
		}
	}
	resp, err := http.Post(url+"/metrics", "text/plain", strings.NewReader("x"))
	n.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics: status %d", resp.StatusCode)
	}
	resp, err = http.Get(url + "/healthz?x=" + strings.Repeat("x", 64<<10))
	n.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 64 KiB: status %d", resp.StatusCode)
	}
}

// An address in use is one warning and is tried again; calls are served meanwhile.
func TestMetricsListenInUse(t *testing.T) {
	n := newNode(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	n.must(err)
	n.config.MetricsListen = l.Addr().String()
	n.start(daemon.RunRetryingSoon)
	n.await("metrics not served, will retry", n.config.MetricsListen, "address already in use")
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Error(err)
	}
	time.Sleep(50 * time.Millisecond) // some attempts fail
	n.must(l.Close())
	if got := n.metricsAddress(); got != n.config.MetricsListen {
		t.Errorf("metrics are served on %s", got)
	}
	if got := strings.Count(n.log.String(), "metrics not served"); got != 1 {
		t.Errorf("%d warnings, want 1", got)
	}
}

// A proxy is ready while the runtime answers and each plugin with policy Fail is active, and
// says which of these fails. It is healthy all the time.
func TestReadiness(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket, n.config.MetricsListen = filepath.Join(n.dir, "admin.sock"), "127.0.0.1:0"
	n.put("10-trap.wasm", "missing-hook") // which cannot be loaded
	n.put("10-trap.json", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.put("20-quota.wasm", "missing-hook") // nobody needs it
	n.start(daemon.Run)
	n.awaitSocket()
	public := "http://" + n.metricsAddress() + "/readyz"
	ready := func(status int, words ...string) {
		t.Helper()
		var got int
		var body string
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			got, body = n.ofAdmin("/readyz")
			missing := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.Contains(body, w) })
			if got == status && len(missing) == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("/readyz: status %d, want %d with %q: %s", got, status, words, body)
			}
		}
		if status, body := n.ofAdmin("/healthz"); status != 200 || body != "ok\n" {
			t.Errorf("/healthz: %d %s", status, body)
		}
	}
	ready(503, "plugin 10-trap: loading plugin 10-trap: ", "wp_hook", "the plugin is not loaded", "plugin 20-quota: ")
	open := regexp.MustCompile("^plugin 10-trap: its files cannot be loaded, since [^ ]+Z; the plugin is not loaded\nplugin 20-quota: [^\n]+\n$")
	status, body := n.get(http.DefaultTransport, public)
	for end := time.Now().Add(patience); !open.MatchString(body) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) { // until the pods are read
		status, body = n.get(http.DefaultTransport, public)
	}
	if status != 503 || !open.MatchString(body) {
		t.Errorf("anyone who can reach metrics-listen reads: %d %s", status, body)
	}
	n.runtime.Stop()
	ready(503, "10-trap", "the container runtime does not answer: ")
	n.remove("10-trap.json")
	n.remove("10-trap.wasm")
	n.remove("20-quota.wasm")
	ready(503, "the container runtime does not answer: ")
	n.runtime = fake.NewFakeRemoteRuntime()
	n.must(n.runtime.Start("unix://" + n.config.Backend))
	t.Cleanup(n.runtime.Stop)
	ready(200, "ok")
}

// A failure is counted by its class.
func TestFailuresByClass(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	classes := map[string]string{"loop": "fuel", "host-call-flood": "host_calls", "trap": "trap", "fail": "error", "abort": "trap"}
	var ids []string
	for guest := range classes {
		n.put(guest+".wasm", guest)
		n.put(guest+".json", `{"limits": {"fuel": 1000000}, "timeout": "30s"}`)
		ids = append(ids, guest)
	}
	n.put("away.json", `{"remote-endpoint": "`+filepath.Join(n.dir, "nobody.sock")+`", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.start(daemon.Run)
	ids = append(ids, "away")
	slices.Sort(ids)
	n.awaitActive(ids...)
	n.awaitSocket()
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	for guest, class := range classes {
		n.awaitMetric(fmt.Sprintf(`wasmproxy_plugin_failures_total{class=%q,hook="PreRunPodSandbox",plugin=%q} 1`, class, guest))
	}
	n.awaitMetric(`wasmproxy_plugin_failures_total{class="away",hook="PreRunPodSandbox",plugin="away"} 1`)
}

// A bypass is a metric, and what the operator wants: the proxy is ready.
func TestMetricsTellOfTheBypass(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket, n.config.BypassFile = filepath.Join(n.dir, "admin.sock"), filepath.Join(n.dir, "bypass")
	n.put("10-trap.wasm", "missing-hook") // which cannot be loaded
	n.put("10-trap.json", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.start(daemon.Run)
	n.awaitSocket()
	n.awaitMetric("wasmproxy_bypass 0")
	if status, body := n.ofAdmin("/readyz"); status != 503 {
		t.Errorf("before the bypass: %d %s", status, body)
	}
	n.must(os.WriteFile(n.config.BypassFile, nil, 0o644))
	n.awaitMetric("wasmproxy_bypass 1")
	n.awaitMetric(`wasmproxy_plugin_state{plugin="10-trap",state="bypassed"} 1`)
	if status, body := n.ofAdmin("/readyz"); status != 200 {
		t.Errorf("in the bypass: %d %s", status, body)
	}
}

// The admin socket has Go's profiles.
func TestProfiles(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.start(daemon.Run)
	n.awaitSocket()
	for _, profile := range []string{"/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1", "/debug/pprof/profile?seconds=1"} {
		if status, body := n.ofAdmin(profile); status != 200 || len(body) < 100 {
			t.Errorf("%s: %d %s", profile, status, body)
		}
	}
}

// What a real run with real plugins exports is in the table, is as Prometheus' linter wants it,
// and does not grow with pods.
func TestMetricsOfARun(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	audit, err := os.ReadFile("../../plugins-wasm/audit/audit.wasm")
	n.must(err)
	n.putRaw("90-audit.wasm", string(audit))
	n.put("80-trap.wasm", "trap")
	n.put("80-trap.json", `{"match": {"namespaces": ["trapped"]}}`)
	n.runIdleWith("10-qos", "20-quota", "80-trap", "90-audit")
	n.awaitSocket()
	trapped := podNamed("trapped")
	trapped.Metadata.Namespace = "trapped"
	_, err = n.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: trapped})
	n.must(err)
	_ = n.conn.Invoke(t.Context(), "/made.up.Service/Method", &runtimeapi.VersionRequest{}, &runtimeapi.VersionResponse{})
	for _, line := range []string{
		`wasmproxy_own_calls_total{method="RunPodSandbox",plugin="90-audit"} 2`,
		`wasmproxy_cgroup_writes_total{plugin="10-qos"} 1`,
		`wasmproxy_plugin_failures_total{class="trap",hook="PreRunPodSandbox",plugin="80-trap"} 1`,
		`wasmproxy_plugin_calls_total{outcome="ok",plugin="10-qos"} 1`,
		`wasmproxy_plugin_changes_total{plugin="20-quota"} 2`,
		`wasmproxy_calls_total{code="Unimplemented",method="other",route="passed"} 1`,
		`wasmproxy_ledger_values 2`,
	} {
		n.awaitMetric(line)
	}
	_, before := n.ofAdmin("/metrics")
	checkTable(t, before)
	for i := range 100 {
		_, err := n.runPod(t.Context(), fmt.Sprint("more", i))
		n.must(err)
	}
	n.awaitMetric(`wasmproxy_own_calls_total{method="RunPodSandbox",plugin="90-audit"} 102`)
	_, after := n.ofAdmin("/metrics")
	if series(before) != series(after) {
		t.Errorf("%d series for two pods, %d for 102", series(before), series(after))
	}
}

// series counts the series of a scrape that the proxy's own metrics have.
func series(scrape string) int { return strings.Count(scrape, "\nwasmproxy_") }

// checkTable demands that all of a scrape is in the table, and that the linter has nothing to say.
func checkTable(t *testing.T, scrape string) {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(scrape)).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	for line := range strings.Lines(scrape) {
		of := strings.Fields(line)
		if len(of) < 4 || of[1] != "TYPE" || strings.HasPrefix(of[2], "go_") || strings.HasPrefix(of[2], "process_") || strings.HasPrefix(of[2], metrics.OwnPrefix) {
			continue
		}
		if !slices.ContainsFunc(metrics.Families, func(f metrics.Family) bool { return f.Name == of[2] && string(f.Type) == of[3] }) {
			t.Errorf("%s is not in the table", strings.TrimSpace(line))
		}
	}
}
