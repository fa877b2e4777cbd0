// Package monitoring has a real Prometheus scrape a real wasmproxy, and asks it what the
// dashboard and the alerting rules of deploy/prometheus ask.
package monitoring

import (
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const patience = time.Minute

// notProduced are the documented metrics that have no series after this run, and why.
var notProduced = map[string]string{
	"wasmproxy_hooks_skipped_total":   "every request can be decoded",
	"wasmproxy_post_hooks_late_total": "no post hook takes long",

	"wasmproxy_plugin_on_probation":             "no plugin is delivered with a probation",
	"wasmproxy_plugin_ticks_stopped_total":      "no plugin has a Tick",
	"wasmproxy_plugin_shadow_total":             "no plugin has a shadow",
	"wasmproxy_plugin_dry_run_rejections_total": "the plugin in dry-run changes containers",
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
		"30-trap": {"testdata/wat/trap.wasm", `{"match": {"namespaces": ["trapped"]}}`}, "40-dry": {"testdata/wat/quota.wasm", `{"dry-run": true}`},
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

// maxSeries is how many series a node with five plugins may have.
const maxSeries = 350

// checkSeries counts the series of a node with five plugins, each of which was called in its hooks.
func (l *lab) checkSeries(t *testing.T) {
	text, err := get("http://" + l.metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	lint := exec.Command(filepath.Join(l.bin, "promtool"), "check", "metrics")
	lint.Stdin = strings.NewReader(text)
	if out, err := lint.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	n := len(regexp.MustCompile(`(?m)^[^#\n]`).FindAllString(text, -1))
	t.Logf("%d series", n)
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

// finds is query until there is a series: none has a value from a scrape that took longer than its second until the next one.
func (l *prometheus) finds(expr string) (series []json.RawMessage, err error) {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if series, err = l.query(expr); err == nil && len(series) > 0 || time.Now().After(end) {
			return series, err
		}
	}
}

// checkDocumented demands each metric of docs/metrics.md, with its type. Prometheus scrapes
// OpenMetrics, in which a counter's name ends before _total.
func (l *prometheus) checkDocumented(t *testing.T) {
	page, err := os.ReadFile(l.builder.ProjectFile("docs/metrics.md"))
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
		if got, err := l.finds(series); err != nil || len(got) == 0 {
			t.Errorf("Prometheus has no %s (%v)", series, err)
		}
		if got := types[strings.TrimSuffix(name, "_total")]; len(got) != 1 || got[0].Type != of {
			t.Errorf("%s has the type %v, want %s", name, got, of)
		}
	}
	if got, err := l.finds(`wasmproxy_own_calls_total{plugin="90-audit", method="RunPodSandbox"} > 0`); err != nil || len(got) != 1 {
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
			if got, err := l.finds(expr); err != nil || len(got) == 0 {
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
				if series, err := l.finds(name); err != nil || len(series) == 0 {
					t.Errorf("alert %s asks for %s, which is not there (%v)", r.Name, name, err)
				}
			}
		}
	}
	if rules < 10 {
		t.Errorf("Prometheus has %d rules", rules)
	}
}
