package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

const rulesDir = "../../deploy/prometheus"

// serveMetrics serves what a program tells Prometheus, as the program does.
func serveMetrics(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	address = "127.0.0.1:" + testcluster.FreePort(t)
	if err := metrics.Serve(t.Context(), address, handler, metrics.Healthy); err != nil {
		t.Fatal(err)
	}
	return address
}

// prometheus is a real one, which scrapes the agents and the controller.
type prometheus struct {
	t            *testing.T
	bin, address string
	targets      []string
}

func startPrometheus(t *testing.T, bin string, jobs map[string][]string) *prometheus {
	t.Helper()
	p := &prometheus{t: t, bin: bin, address: "127.0.0.1:" + testcluster.FreePort(t)}
	var scrape []any
	for job, targets := range jobs {
		p.targets = append(p.targets, targets...)
		scrape = append(scrape, map[string]any{"job_name": job, "static_configs": []any{map[string]any{"targets": targets}}})
	}
	rules, err := filepath.Abs(filepath.Join(rulesDir, "fleet-alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(map[string]any{ // JSON is YAML
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules}, "scrape_configs": scrape,
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yaml")
	if err := errors.Join(err, os.WriteFile(file, config, 0o644)); err != nil {
		t.Fatal(err)
	}
	testcluster.Process(t, exec.Command(filepath.Join(bin, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+p.address, "--log.level=warn"))
	return p
}

func get(address, path string) (string, error) {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s answers with %s: %s", path, resp.Status, text))
	}
	return string(text), err
}

// ask asks Prometheus' API.
func (p *prometheus) ask(resource string, into any) error {
	text, err := get(p.address, "/api/v1/"+resource)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), &struct {
		Data any `json:"data"`
	}{into})
}

// has reports as an error that a query has no series.
func (p *prometheus) has(query string) error {
	var got struct{ Result []json.RawMessage }
	err := p.ask("query?query="+url.QueryEscape(query), &got)
	if err == nil && len(got.Result) == 0 {
		err = fmt.Errorf("%s has no data", query)
	}
	return err
}

// sees waits until a query has a series.
func (p *prometheus) sees(query string) {
	p.t.Helper()
	testcluster.Eventually(p.t, "Prometheus sees "+query, func() error { return p.has(query) })
}

// check holds that each query of the dashboard has data and each alert its metrics, and that what is documented is there. It is called
// in a step of an update that no node can fetch, in which there is something to see of everything.
func (p *prometheus) check() {
	p.t.Helper()
	p.sees(`sum(wasmproxy_fleet_agent_unfetched_revisions) == 3 and sum(increase(wasmproxy_fleet_agent_fetch_failures_total[30s])) > 0`)
	p.sees(`wasmproxy_fleet_leading == 1`)
	p.sees(`wasmproxy_fleet_plugin_step_timestamp_seconds`)
	p.checkDashboard()
	p.checkRules()
	p.checkDocumented()
	for _, target := range p.targets {
		text, err := get(target, "/metrics")
		if err != nil {
			p.t.Fatal(err)
		}
		lint := exec.Command(filepath.Join(p.bin, "promtool"), "check", "metrics")
		lint.Stdin = strings.NewReader(text)
		if out, err := lint.CombinedOutput(); err != nil {
			p.t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
		if n := strings.Count(text, "\n") - strings.Count(text, "\n#"); n > 150 {
			p.t.Errorf("%s has %d series:\n%s", target, n, text)
		}
		if text, err := get(target, "/healthz"); err != nil || text != "ok\n" {
			p.t.Errorf("%s says of its health %q (%v)", target, text, err)
		}
	}
}

func (p *prometheus) checkDashboard() {
	p.t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(filepath.Join(rulesDir, "fleet-dashboard.json"))
	if err := errors.Join(err, json.Unmarshal(text, &dashboard)); err != nil {
		p.t.Fatal(err)
	}
	queries := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries++
			expr := strings.NewReplacer("$__rate_interval", "20s", "$plugin", ".*").Replace(target.Expr)
			if err := p.has(expr); err != nil {
				p.t.Errorf("panel %q: %v", panel.Title, err)
			}
		}
	}
	if queries < 15 {
		p.t.Errorf("the dashboard has %d queries", queries)
	}
}

// checkRules has promtool test the alerts, and demands that each metric of a rule is there.
func (p *prometheus) checkRules() {
	p.t.Helper()
	cases := filepath.Join(rulesDir, "fleet-alerts_test.yaml")
	if out, err := exec.Command(filepath.Join(p.bin, "promtool"), "test", "rules", cases).CombinedOutput(); err != nil {
		p.t.Errorf("promtool test rules: %v\n%s", err, out)
	}
	type rule struct{ Name, Health, LastError, Query string }
	var got struct{ Groups []struct{ Rules []rule } }
	testcluster.Eventually(p.t, "the rules are evaluated", func() error {
		err := p.ask("rules", &got)
		if err == nil && (len(got.Groups) != 1 || slices.ContainsFunc(got.Groups[0].Rules, func(r rule) bool { return r.Health == "unknown" })) {
			err = errors.New("not all rules are evaluated")
		}
		return err
	})
	for _, r := range got.Groups[0].Rules {
		if r.Health != "ok" {
			p.t.Errorf("alert %s: %s %s", r.Name, r.Health, r.LastError)
		}
		for _, name := range regexp.MustCompile(`\b(wasmproxy_\w+|up)\b`).FindAllString(r.Query, -1) {
			if err := p.has(name); err != nil {
				p.t.Errorf("alert %s: %v", r.Name, err)
			}
		}
	}
}

// checkDocumented compares the metrics with the table in docs/fleet.md. OpenMetrics has a counter's name without _total.
func (p *prometheus) checkDocumented() {
	p.t.Helper()
	page, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		p.t.Fatal(err)
	}
	var types map[string][]struct{ Type string }
	if err := p.ask("metadata", &types); err != nil {
		p.t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(wasmproxy_fleet_[a-z_]+)` \\| (counter|gauge) \\|").FindAllStringSubmatch(string(page), -1) {
		name := strings.TrimSuffix(row[1], "_total")
		documented[name] = true
		if got := types[name]; len(got) != 1 || got[0].Type != row[2] {
			p.t.Errorf("%s has the type %v, and docs/fleet.md says %s", name, got, row[2])
		}
	}
	for name := range types {
		if strings.HasPrefix(name, "wasmproxy_") && !documented[name] {
			p.t.Errorf("docs/fleet.md does not have %s", name)
		}
	}
}
