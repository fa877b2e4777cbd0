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

// lab is a wasmproxy with plugins, before a runtime that answers at once.
type lab struct {
	t       *testing.T
	builder *artifact.Builder
	bin     string // directory of the programs
	dir     string // of this lab
	metrics string // address
	runtime cri.RuntimeServiceClient
	images  cri.ImageServiceClient
	proxy   *exec.Cmd
}

// programs builds what the labs run, and returns its directory.
func programs(t *testing.T) (*artifact.Builder, string) {
	t.Helper()
	builder, err := artifact.NewBuilder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(builder.Prometheus(t.Context(), dir), builder.Bench(t.Context(), dir), builder.Project(t.Context(), dir, "./cmd/wasmproxy")); err != nil {
		t.Fatal(err)
	}
	return builder, dir
}

// newLab makes the directories and starts the runtime.
func newLab(t *testing.T, builder *artifact.Builder, bin string) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lab{t: t, builder: builder, bin: bin, dir: dir, metrics: freeAddress(t)}
	for _, dir := range []string{"plugins.d", "hooks", "cgroup"} {
		if err := os.Mkdir(l.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.start("bench", "backend", l.path("backend.sock"))
	return l
}

// plugin puts a module of the project and its JSON into the plugin directory, each by a rename.
func (l *lab) plugin(id, module, settings string) {
	l.t.Helper()
	text, err := os.ReadFile(l.builder.ProjectFile(module))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{id + ".json", []byte(settings)}, {id + ".wasm", text}} {
		if err := errors.Join(os.WriteFile(l.path("new"), file.content, 0o644), os.Rename(l.path("new"), l.path("plugins.d/"+file.name))); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestPrometheus(t *testing.T) {
	builder, bin := programs(t)
	l := newLab(t, builder, bin)
	p := &prometheus{lab: l, address: freeAddress(t)}
	rules := l.builder.ProjectFile("deploy/prometheus")
	if out, err := exec.Command(filepath.Join(l.bin, "promtool"), "test", "rules", filepath.Join(rules, "alerts_test.yaml")).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	for id, from := range map[string][2]string{
		"10-qos": {"plugins-wasm/qos/qos.wasm", `{}`}, "20-reject": {"testdata/wat/reject.wasm", `{"match": {"namespaces": ["refused"]}}`},
		"30-trap": {"testdata/wat/trap.wasm", `{"match": {"namespaces": ["trapped"]}}`}, "40-dry": {"plugins-wasm/qos/qos.wasm", `{"dry-run": true}`},
		"90-audit": {"plugins-wasm/audit/audit.wasm", `{}`},
	} {
		l.plugin(id, from[0], from[1])
	}
	l.startProxy()
	l.awaitMetric(`wasmproxy_plugin_state{plugin=".*",state="active"} 1`, 5)
	p.start(filepath.Join(rules, "alerts.yaml"))
	p.load()
	t.Run("documented metrics", func(t *testing.T) { p.checkDocumented(t) })
	t.Run("dashboard", func(t *testing.T) { p.checkDashboard(t, filepath.Join(rules, "dashboard.json")) })
	t.Run("alerts", func(t *testing.T) { p.checkAlerts(t) })
	t.Run("series", func(t *testing.T) { l.checkSeries(t) })
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

// start starts a program, which ends with the test.
func (l *lab) start(program string, args ...string) *exec.Cmd {
	l.t.Helper()
	log, err := os.OpenFile(l.path(program+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(l.bin, program), args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, []string{"PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if said, err := os.ReadFile(log.Name()); l.t.Failed() {
			l.t.Logf("%s said (%v):\n%s", program, err, said[max(0, len(said)-4096):])
		}
	})
	return cmd
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

// startProxy starts wasmproxy, with further flags, and waits until it serves metrics.
func (l *lab) startProxy(flags ...string) {
	l.t.Helper()
	l.proxy = l.start("wasmproxy", append([]string{"serve", "--config", "", "--listen", l.path("proxy.sock"), "--backend", l.path("backend.sock"),
		"--plugin-dir", l.path("plugins.d"), "--hook-dir", l.path("hooks"), "--cache-dir", filepath.Join(l.bin, "cache"), "--state-dir", l.path("state"),
		"--admin-socket", l.path("admin.sock"), "--bypass-file", l.path("bypass"), "--cgroup-root", l.path("cgroup"), "--cgroup-mode", "v2",
		"--metrics-listen", l.metrics}, flags...)...)
	if l.runtime == nil {
		conn, err := grpc.NewClient("unix://"+l.path("proxy.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(func() { conn.Close() })
		l.runtime, l.images = cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn)
	}
	l.await("wasmproxy", func() error { _, err := get("http://" + l.metrics + "/healthz"); return err })
}

// awaitMetric waits until so many lines of the metrics match a pattern.
func (l *lab) awaitMetric(pattern string, count int) {
	l.t.Helper()
	line := regexp.MustCompile("(?m)^" + pattern + "$")
	l.await(pattern, func() error {
		text, err := get("http://" + l.metrics + "/metrics")
		if n := len(line.FindAllString(text, -1)); err == nil && n < count {
			err = fmt.Errorf("%d of %d lines", n, count)
		}
		return err
	})
}

// maxSeries is how many series a node with five plugins may have.
const maxSeries = 350

// checkSeries counts the series of a node with five plugins, each of which was called in its hooks.
func (l *lab) checkSeries(t *testing.T) {
	text, err := get("http://" + l.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	n := len(regexp.MustCompile(`(?m)^[^#\n]`).FindAllString(text, -1))
	t.Logf("%d series\n%s", n, text)
	if n > maxSeries {
		t.Errorf("there are %d series, %d are allowed:\n%s", n, maxSeries, text)
	}
}

// prometheus scrapes a lab.
type prometheus struct {
	*lab
	address string
}

func (l *prometheus) start(rules string) {
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
	l.lab.start("prometheus", "--config.file="+l.path("prometheus.yaml"), "--storage.tsdb.path="+l.path("tsdb"), "--web.listen-address="+l.address, "--log.level=warn")
	l.await("Prometheus", func() error { _, err := get("http://" + l.address + "/-/ready"); return err })
}

// load runs pods until Prometheus has seen counters grow.
func (l *prometheus) load() {
	l.t.Helper()
	l.await("growing counters", func() error {
		_, sandbox, container, err := l.runPod("shop")
		if err := errors.Join(err, l.everyCall(sandbox, container)); err != nil {
			return err
		}
		if _, _, _, err := l.runPod("refused"); err == nil {
			return errors.New("20-reject refuses nothing")
		}
		if _, _, _, err := l.runPod("trapped"); err != nil {
			return err
		}
		got, err := l.query(`sum(increase(wasmproxy_calls_total[20s])) > 0 and sum(increase(wasmproxy_plugin_failures_total[20s])) > 0 and sum(increase(wasmproxy_calls_refused_total[20s])) > 0`)
		if err == nil && len(got) == 0 {
			err = errors.New("no counter grows")
		}
		return err
	})
}

// runPod runs a pod with a container, as kubelet does. A plugin may refuse it.
func (l *lab) runPod(namespace string) (pod *cri.PodSandboxConfig, sandbox, container string, err error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	uid := fmt.Sprint(time.Now().UnixNano())
	group := "/kubepods/burstable/pod" + uid
	pod = &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: "web", Namespace: namespace, Uid: uid}, Linux: &cri.LinuxPodSandboxConfig{CgroupParent: group},
		Annotations: map[string]string{"memory-qos.wasmproxy.io/request.app": "1048576"},
	}
	if err := os.MkdirAll(l.path("cgroup"+group), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.runtime.Version(ctx, &cri.VersionRequest{}); err != nil {
		l.t.Fatal(err)
	}
	run, err := l.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
	if err != nil {
		return pod, "", "", err
	}
	c, err := l.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: run.PodSandboxId, SandboxConfig: pod, Config: &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: "app"},
		Linux:    &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{CpuQuota: 100000, CpuPeriod: 100000, MemoryLimitInBytes: 2 << 20}},
	}})
	if err != nil {
		return pod, run.PodSandboxId, "", err
	}
	_, err = l.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: c.ContainerId})
	return pod, run.PodSandboxId, c.ContainerId, err
}

// everyCall makes the other calls of a pod's life, and those of images.
func (l *lab) everyCall(sandbox, container string) error {
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	var failed error
	do := func(_ any, err error) { failed = errors.Join(failed, err) }
	do(l.runtime.UpdateContainerResources(ctx, &cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{CpuShares: 512}}))
	do(l.runtime.UpdatePodSandboxResources(ctx, &cri.UpdatePodSandboxResourcesRequest{PodSandboxId: sandbox}))
	do(l.runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: container, Cmd: []string{"true"}}))
	do(l.runtime.Exec(ctx, &cri.ExecRequest{ContainerId: container, Cmd: []string{"true"}, Stdout: true}))
	do(l.runtime.Attach(ctx, &cri.AttachRequest{ContainerId: container, Stdout: true}))
	do(l.runtime.PortForward(ctx, &cri.PortForwardRequest{PodSandboxId: sandbox, Port: []int32{80}}))
	do(l.runtime.CheckpointContainer(ctx, &cri.CheckpointContainerRequest{ContainerId: container}))
	do(l.images.PullImage(ctx, &cri.PullImageRequest{Image: &cri.ImageSpec{Image: "web:1"}}))
	do(l.images.RemoveImage(ctx, &cri.RemoveImageRequest{Image: &cri.ImageSpec{Image: "web:1"}}))
	do(l.runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: container}))
	do(l.runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: container}))
	do(l.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox}))
	do(l.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: sandbox}))
	return failed
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
func (l *prometheus) ask(resource string, into any) error {
	text, err := get("http://" + l.address + "/api/v1/" + resource)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &struct {
		Data any `json:"data"`
	}{into})
}

// query returns the series of a query, with their values.
func (l *prometheus) query(expr string) (series []json.RawMessage, err error) {
	var got struct{ Result []json.RawMessage }
	err = l.ask("query?query="+url.QueryEscape(expr), &got)
	return got.Result, err
}

// checkDocumented demands each metric of docs/operations.md, with its type. Prometheus scrapes
// OpenMetrics, in which a counter's name ends before _total.
func (l *prometheus) checkDocumented(t *testing.T) {
	page, err := os.ReadFile(l.builder.ProjectFile("docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	var types map[string][]struct{ Type string }
	if err := l.ask("metadata", &types); err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(wasmproxy_[a-z_]+)` \\| (counter|gauge|histogram) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 40 {
		t.Errorf("only %d metrics are documented", len(rows))
	}
	for _, row := range rows {
		name, of := row[1], row[2]
		if notProduced[name] != "" {
			continue
		}
		series := name
		if of == "histogram" {
			series += "_bucket"
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
func (l *prometheus) checkDashboard(t *testing.T, file string) {
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
func (l *prometheus) checkAlerts(t *testing.T) {
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
