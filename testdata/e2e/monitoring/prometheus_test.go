// Package monitoring has a real Prometheus scrape a real wasmproxy, and asks it what the
// dashboard and the alerting rules of deploy/prometheus ask.
package monitoring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

const patience = time.Minute

// notProduced are the documented metrics that have no series after this run, and why.
var notProduced = map[string]string{
	"wasmproxy_hooks_skipped_total":   "every request can be decoded",
	"wasmproxy_post_hooks_late_total": "no post hook takes long",
}

// lab is a wasmproxy with plugins, before a runtime that answers at once, and a Prometheus.
type lab struct {
	t          *testing.T
	builder    *artifact.Builder
	dir        string
	metrics    string // address
	prometheus string // address
	runtime    cri.RuntimeServiceClient
}

func TestPrometheus(t *testing.T) {
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lab{t: t, builder: builder, dir: dir, metrics: freeAddress(t), prometheus: freeAddress(t)}
	if err := errors.Join(builder.Prometheus(t.Context(), dir), builder.Bench(t.Context(), dir), builder.Project(t.Context(), dir, "./cmd/wasmproxy")); err != nil {
		t.Fatal(err)
	}
	rules := builder.ProjectFile("deploy/prometheus")
	if out, err := exec.Command(filepath.Join(dir, "promtool"), "test", "rules", filepath.Join(rules, "alerts_test.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	l.startProxy()
	l.startPrometheus(filepath.Join(rules, "alerts.yaml"))
	l.load()
	t.Run("documented metrics", func(t *testing.T) { l.checkDocumented(t) })
	t.Run("dashboard", func(t *testing.T) { l.checkDashboard(t, filepath.Join(rules, "dashboard.json")) })
	t.Run("alerts", func(t *testing.T) { l.checkAlerts(t) })
}

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a program of the lab, which ends with the test.
func (l *lab) start(program string, args ...string) {
	l.t.Helper()
	log, err := os.Create(filepath.Join(l.dir, program+".log"))
	if err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(l.dir, program), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		log.Close()
		if said, err := os.ReadFile(log.Name()); l.t.Failed() {
			l.t.Logf("%s said (%v):\n%s", program, err, said[max(0, len(said)-4096):])
		}
	})
}

// await waits until f succeeds.
func (l *lab) await(what string, f func() error) {
	l.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	l.t.Fatalf("%s: %v", what, err)
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// startProxy starts wasmproxy with a plugin that changes containers, one that refuses pods, one
// that fails, one that counts, and one in dry-run.
func (l *lab) startProxy() {
	l.t.Helper()
	for _, dir := range []string{"plugins.d", "hooks", "cgroup"} {
		if err := os.Mkdir(l.path(dir), 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	for id, from := range map[string][2]string{
		"10-qos": {"plugins-wasm/qos/qos.wasm", `{}`}, "20-reject": {"testdata/wat/reject.wasm", `{"match": {"namespaces": ["refused"]}}`},
		"30-trap": {"testdata/wat/trap.wasm", `{"match": {"namespaces": ["trapped"]}}`}, "40-dry": {"plugins-wasm/qos/qos.wasm", `{"dry-run": true}`},
		"90-audit": {"plugins-wasm/audit/audit.wasm", `{}`},
	} {
		module, err := os.ReadFile(l.builder.ProjectFile(from[0]))
		if err := errors.Join(err, os.WriteFile(l.path("plugins.d/"+id+".json"), []byte(from[1]), 0o644), os.WriteFile(l.path("plugins.d/"+id+".wasm"), module, 0o644)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.start("bench", "backend", l.path("backend.sock"))
	l.start("wasmproxy", "serve", "--listen", l.path("proxy.sock"), "--backend", l.path("backend.sock"), "--plugin-dir", l.path("plugins.d"),
		"--hook-dir", l.path("hooks"), "--cache-dir", l.path("cache"), "--state-dir", l.path("state"), "--admin-socket", l.path("admin.sock"),
		"--cgroup-root", l.path("cgroup"), "--cgroup-mode", "v2", "--metrics-listen", l.metrics)
	conn, err := grpc.NewClient("unix://"+l.path("proxy.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { conn.Close() })
	l.runtime = cri.NewRuntimeServiceClient(conn)
	l.await("wasmproxy", func() error { _, err := get("http://" + l.metrics + "/healthz"); return err })
	l.await("plugins", func() error {
		text, err := get("http://" + l.metrics + "/metrics")
		if n := strings.Count(text, `state="active"} 1`); err == nil && n < 5 {
			err = fmt.Errorf("%d of 5 plugins are active", n)
		}
		return err
	})
}

func (l *lab) startPrometheus(rules string) {
	l.t.Helper()
	config, err := json.Marshal(map[string]any{ // JSON is YAML
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{map[string]any{
			"job_name": "wasmproxy", "static_configs": []any{map[string]any{"targets": []string{l.metrics}}},
		}},
	})
	if err := errors.Join(err, os.WriteFile(l.path("prometheus.yaml"), config, 0o644)); err != nil {
		l.t.Fatal(err)
	}
	l.start("prometheus", "--config.file="+l.path("prometheus.yaml"), "--storage.tsdb.path="+l.path("tsdb"), "--web.listen-address="+l.prometheus, "--log.level=warn")
	l.await("Prometheus", func() error { _, err := get("http://" + l.prometheus + "/-/ready"); return err })
}

// load runs pods until Prometheus has seen counters grow.
func (l *lab) load() {
	l.t.Helper()
	l.await("growing counters", func() error {
		l.runPod("shop")
		l.runPod("refused")
		l.runPod("trapped")
		got, err := l.query(`sum(increase(wasmproxy_calls_total[20s])) > 0 and sum(increase(wasmproxy_plugin_failures_total[20s])) > 0 and sum(increase(wasmproxy_calls_refused_total[20s])) > 0`)
		if err == nil && len(got) == 0 {
			err = errors.New("no counter grows")
		}
		return err
	})
}

// runPod makes calls of a pod's life. Some of them are refused, and StartContainer is nothing
// that the runtime does.
func (l *lab) runPod(namespace string) {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	pod := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: "web", Namespace: namespace, Uid: fmt.Sprint(time.Now().UnixNano())}, Linux: &cri.LinuxPodSandboxConfig{},
	}
	if _, err := l.runtime.Version(ctx, &cri.VersionRequest{}); err != nil {
		l.t.Fatal(err)
	}
	run, err := l.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	if (err != nil) != (namespace == "refused") {
		l.t.Fatalf("a pod of namespace %s: %v", namespace, err)
	}
	if err != nil {
		return
	}
	c, err := l.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: run.PodSandboxId, SandboxConfig: pod, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "app"}, Linux: &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuQuota: 100000, CpuPeriod: 100000}},
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	_, _ = l.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: c.ContainerId})
	_, _ = l.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: run.PodSandboxId})
}

func get(url string) (body string, err error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %s", url, resp.StatusCode, text)
	}
	return string(text), err
}

// ask asks Prometheus' API.
func (l *lab) ask(resource string, into any) error {
	text, err := get("http://" + l.prometheus + "/api/v1/" + resource)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &struct {
		Data any `json:"data"`
	}{into})
}

// query returns the series of a query, with their values.
func (l *lab) query(expr string) (series []json.RawMessage, err error) {
	var got struct{ Result []json.RawMessage }
	err = l.ask("query?query="+url.QueryEscape(expr), &got)
	return got.Result, err
}

// checkDocumented demands each metric of docs/operations.md, with its type. Prometheus scrapes
// OpenMetrics, in which a counter's name ends before _total.
func (l *lab) checkDocumented(t *testing.T) {
	page, err := os.ReadFile(l.builder.ProjectFile("docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var types map[string][]struct{ Type string }
	if err := l.ask("metadata", &types); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(wasmproxy_[a-z_]+)` \\| (counter|gauge|histogram|summary) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 40 {
		t.Errorf("only %d metrics are documented", len(rows))
	}
	for _, row := range rows {
		name, of := row[1], row[2]
		if notProduced[name] != "" {
			continue
		}
		series := name
		switch of {
		case "histogram":
			series += "_bucket"
		case "summary":
			series += "_count"
		}
		if got, err := l.query(series); err != nil || len(got) == 0 {
			t.Errorf("Prometheus has no %s (%v)", series, err)
		}
		if got := types[strings.TrimSuffix(name, "_total")]; len(got) != 1 || got[0].Type != of {
			t.Errorf("%s has the type %v, want %s", name, got, of)
		}
	}
	if got, err := l.query(`wasmproxy_own_calls_total{plugin="90-audit", method="RunPodSandbox"} > 0`); err != nil || len(got) != 1 {
		t.Errorf("the audit plugin's own metric: %s (%v)", got, err)
	}
}

// checkDashboard demands data for each query of the dashboard.
func (l *lab) checkDashboard(t *testing.T, file string) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile(file)
	if err := errors.Join(err, json.Unmarshal(text, &dashboard)); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries++
			if strings.Contains(target.LegendFormat, "instance") && !strings.HasPrefix(target.Expr, "topk(") {
				t.Errorf("panel %q: %s draws a line for each node of a fleet", p.Title, target.Expr)
			}
			expr := strings.NewReplacer("$__rate_interval", "20s", "$instance", ".*").Replace(target.Expr)
			if got, err := l.query(expr); err != nil || len(got) == 0 {
				t.Errorf("panel %q: %s has no data (%v)", p.Title, expr, err)
			}
		}
	}
	if queries < 30 {
		t.Errorf("the dashboard has %d queries", queries)
	}
}

// checkAlerts demands that Prometheus evaluates each rule, and that each metric of a rule is
// there.
func (l *lab) checkAlerts(t *testing.T) {
	type rule struct{ Name, Health, LastError, Query, State string }
	var got struct{ Groups []struct{ Rules []rule } }
	l.await("evaluated rules", func() error {
		if err := l.ask("rules", &got); err != nil {
			return err
		}
		for _, g := range got.Groups {
			if slices.ContainsFunc(g.Rules, func(r rule) bool { return r.Health == "unknown" }) {
				return errors.New("not all rules are evaluated")
			}
		}
		return nil
	})
	rules := 0
	for _, g := range got.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Health != "ok" {
				t.Errorf("alert %s: %s %s", r.Name, r.Health, r.LastError)
			}
			for _, name := range regexp.MustCompile(`\b(wasmproxy_\w+|up)\b`).FindAllString(strings.ReplaceAll(r.Query, `"wasmproxy"`, ""), -1) {
				if series, err := l.query(name); err != nil || len(series) == 0 {
					t.Errorf("alert %s asks for %s, which is not there (%v)", r.Name, name, err)
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("Prometheus has %d rules", rules)
	}
}
