package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// failure is something that goes wrong on a node, and the alerts that fire then, with no other.
type failure struct {
	name   string
	flags  []string
	before func(*lab) // the proxy starts
	plant  func(*lab) // and waits until the proxy has noticed
	alerts []string
}

const noop, broken, refusing, failing = "testdata/wat/noop.wasm", "testdata/wat/configure-refuse.wasm", "testdata/wat/reject.wasm", "testdata/wat/trap.wasm"

// failures are the usual ones. A new alert gets a line.
var failures = []failure{
	{name: "a plugin is inactive", plant: func(l *lab) {
		l.plugin("20-bad", broken, `{}`)
		l.awaitMetric(`wasmproxy_plugin_load_failed{plugin="20-bad"} 1`, 1)
	}, alerts: []string{"WasmproxyPluginInactive", "WasmproxyPluginLoadFailed"}},

	{name: "a new version fails to load", plant: func(l *lab) {
		l.plugin("10-good", broken, `{}`)
		l.awaitMetric(`wasmproxy_plugin_load_failed{plugin="10-good"} 1`, 1)
	}, alerts: []string{"WasmproxyPluginLoadFailed"}},

	{name: "a plugin that must not be ignored fails to load after a restart", plant: func(l *lab) {
		l.must(l.proxy.Process.Signal(syscall.SIGTERM))
		_, _ = l.proxy.Process.Wait()
		const fails = `{"failure-policy": "Fail", "match": {"namespaces": ["none"]}}`
		l.plugin("20-bad", broken, fails)
		l.keep("20-bad", broken, fails)
		l.startProxy()
		l.awaitMetric(`wasmproxy_plugin_state{plugin="20-bad",state="refusing"} 1`, 1)
		l.awaitMetric(`wasmproxy_plugin_load_failed{plugin="20-bad"} 1`, 1)
	}, alerts: []string{"WasmproxyFailPluginRefusing", "WasmproxyPluginLoadFailed", "WasmproxyNotReady"}},

	{name: "the settings file is bad", flags: []string{"--config", "settings.yaml"}, before: func(l *lab) {
		l.must(os.WriteFile(l.path("settings.yaml"), []byte("drain-timeout: 4s\n"), 0o644))
	}, plant: func(l *lab) {
		l.must(os.WriteFile(l.path("settings.yaml"), []byte("drain-timeout: 4\n"), 0o644))
		l.awaitMetric("wasmproxy_settings_load_failed 1", 1)
	}, alerts: []string{"WasmproxySettingsLoadFailed"}},

	{name: "a plugin refuses each pod", before: func(l *lab) { l.plugin("20-strict", refusing, `{}`) }, plant: func(l *lab) {
		for range 5 {
			if _, _, _, err := l.runPod("shop"); err == nil {
				l.t.Error("a pod is not refused")
			}
		}
	}, alerts: []string{"WasmproxyPluginRefusing"}},

	{name: "a plugin refuses a pod that no plugin keeps from running", before: func(l *lab) {
		l.plugin("20-strict", refusing, `{"match": {"namespaces": ["kube-system"]}}`)
	}, plant: func(l *lab) {
		if _, _, _, err := l.runPod("kube-system"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric(`wasmproxy_calls_exempted_total{plugin="20-strict"} 2`, 1)
	}, alerts: []string{"WasmproxyPluginExempted"}},

	{name: "a plugin fails in the few calls of a quiet node", before: func(l *lab) { l.plugin("20-bad", failing, `{}`) }, plant: func(l *lab) {
		if _, _, _, err := l.runPod("shop"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric(`wasmproxy_plugin_calls_total{outcome="failed",plugin="20-bad"} 2`, 1)
	}, alerts: []string{"WasmproxyPluginFailing"}},

	{name: "the proxy is not ready", before: func(l *lab) {
		if err := os.Chmod(l.path("plugins.d"), 0o777); err != nil { // anybody may change it
			l.t.Fatal(err)
		}
	}, plant: func(l *lab) {
		if _, _, _, err := l.runPod("shop"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric("wasmproxy_ready 0", 1)
	}, alerts: []string{"WasmproxyNotReady"}},

	{name: "plugins are bypassed", plant: func(l *lab) {
		l.must(os.WriteFile(l.path("bypass"), []byte("a test"), 0o644))
		l.awaitMetric("wasmproxy_bypass 1", 1)
	}, alerts: []string{"WasmproxyBypassOn"}},

	{name: "the audit log cannot be written", before: func(l *lab) {
		l.plugin("20-quota", "testdata/wat/quota.wasm", `{}`)
		l.must(os.Mkdir(l.path("audit.json"), 0o755)) // no line can be written to it
	}, flags: []string{"--audit-log", "audit.json"}, plant: func(l *lab) {
		if _, _, _, err := l.runPod("shop"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric(`wasmproxy_audit_lines_lost_total [1-9]\d*`, 1)
	}, alerts: []string{"WasmproxyAuditLinesLost"}},

	{name: "state cannot be written", before: func(l *lab) { l.plugin("20-quota", "testdata/wat/quota.wasm", `{}`) }, plant: func(l *lab) {
		l.must(os.RemoveAll(l.path("state")))
		if _, _, _, err := l.runPod("shop"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric("wasmproxy_state_saved 0", 1)
	}, alerts: []string{"WasmproxyStateNotSaved"}},

	{name: "values do not hold", before: func(l *lab) {
		l.plugin("20-memory-qos", "plugins-wasm/memory-qos/memory-qos.wasm", `{"grant": ["update.others"]}`)
	}, plant: func(l *lab) { // the pod's cgroup has no memory.low
		if _, _, _, err := l.runPod("shop"); err != nil {
			l.t.Error(err)
		}
		l.awaitMetric(`wasmproxy_ledger_values_not_held{plugin="20-memory-qos"} [1-9]\d*`, 1)
	}, alerts: []string{"WasmproxyValuesNotHeld"}},
}

// Each of the usual failures is planted in a real proxy, whose metrics before and after are played to promtool:
// its alerts fire within their time, and no other.
func TestFailuresFire(t *testing.T) {
	builder, bin := programs(t)
	for _, f := range failures {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, builder, bin)
			l.plugin("10-good", noop, `{}`)
			if f.before != nil {
				f.before(l)
			}
			for i := range f.flags {
				if name := f.flags[i]; filepath.Ext(name) != "" { // a file of the lab's
					f.flags[i] = l.path(name)
				}
			}
			l.startProxy(f.flags...)
			l.awaitLoaded()
			played := new(tape)
			played.hold(l.scrape(), 10)
			f.plant(l)
			played.hold(l.scrape(), 30)
			played.check(l, 10, f.alerts)
		})
	}
}

// A proxy that ends again and again is started by systemd, and Prometheus sees it between.
func TestRestartsFire(t *testing.T) {
	builder, bin := programs(t)
	l := newLab(t, builder, bin)
	l.plugin("10-good", noop, `{}`)
	played := new(tape)
	for i := range 4 {
		l.startProxy()
		l.awaitLoaded()
		played.hold(l.scrape(), map[bool]int{true: 10, false: 3}[i == 0])
		l.must(l.proxy.Process.Kill())
		_, _ = l.proxy.Process.Wait()
	}
	played.check(l, 16, []string{"WasmproxyRestarting"})
}

// A day with an upgrade, a delivery and a reboot fires nothing, at no time.
func TestHealthyDayFiresNothing(t *testing.T) {
	builder, bin := programs(t)
	l := newLab(t, builder, bin)
	played := new(tape)
	pods := func() {
		t.Helper()
		for range 3 {
			_, sandbox, container, err := l.runPod("shop")
			l.must(errors.Join(err, l.everyCall(sandbox, container)))
		}
		if _, _, _, err := l.runPod("refused"); err == nil { // as a policy is made for, now and then
			t.Error("20-reject refuses nothing")
		}
		played.hold(l.scrape(), 30)
	}
	l.plugin("10-qos", "plugins-wasm/qos/qos.wasm", `{}`)
	l.plugin("20-reject", refusing, `{"match": {"namespaces": ["refused"]}}`)
	l.plugin("90-audit", "plugins-wasm/audit/audit.wasm", `{}`)
	l.startProxy("--audit-log", l.path("audit.json"))
	played.hold(l.scrape(), 1) // while plugins are loaded
	l.awaitLoaded()
	pods()

	l.plugin("10-qos", "plugins-wasm/qos/qos.wasm", `{"dry-run": true}`) // a delivery
	l.plugin("30-new", noop, `{}`)
	played.hold(l.scrape(), 1)
	l.awaitMetric(`wasmproxy_plugin_state{plugin="30-new",state="active"} 1`, 1)
	l.awaitLoaded()
	pods()

	l.stopServing() // an upgrade
	l.startProxy("--audit-log", l.path("audit.json"))
	played.hold(l.scrape(), 1)
	l.awaitLoaded()
	pods()

	l.stopServing() // a reboot
	l.must(errors.Join(os.RemoveAll(l.path("state")), os.RemoveAll(l.path("cgroup")), os.Mkdir(l.path("cgroup"), 0o755)))
	played.gap(4)
	l.startProxy("--audit-log", l.path("audit.json"))
	played.hold(l.scrape(), 1)
	l.awaitLoaded()
	pods()
	played.check(l, 0, nil)
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// awaitLoaded waits until each plugin of the directory is active, unless none is read.
func (l *lab) awaitLoaded() {
	l.t.Helper()
	files, err := filepath.Glob(l.path("plugins.d/*.wasm"))
	l.must(err)
	info, err := os.Stat(l.path("plugins.d"))
	l.must(err)
	if info.Mode().Perm()&0o022 == 0 {
		l.awaitMetric(`wasmproxy_plugin_state{plugin=".*",state="active"} 1`, len(files))
	}
}

// series are those of a scrape, with their values.
type series map[string]string

var sample = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? ([^ \n]+)$`)

// scrape reads the metrics, with the labels that Prometheus adds.
func (l *lab) scrape() series {
	l.t.Helper()
	var text string
	l.await("metrics", func() (err error) {
		text, err = get("http://" + l.metrics + "/metrics")
		return err
	})
	all := series{`up{job="wasmproxy",instance="n1"}`: "1"}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		v, err := strconv.ParseFloat(m[3], 64)
		l.must(err)
		labels := strings.TrimPrefix(m[2]+`,job="wasmproxy",instance="n1"`, ",")
		all[m[1]+"{"+labels+"}"] = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return all
}

// stopServing ends the process that serves.
func (l *lab) stopServing() {
	l.t.Helper()
	serving := func() []string {
		out, _ := exec.Command("pgrep", "-f", l.path("proxy.sock")).Output() // fails if there is none
		return strings.Fields(string(out))
	}
	for _, pid := range serving() {
		_ = exec.Command("kill", pid).Run()
	}
	l.await("the end of the proxy", func() error {
		if left := serving(); len(left) > 0 {
			return fmt.Errorf("processes %q are left", left)
		}
		return nil
	})
}

// tape has a scrape for each minute.
type tape []series

// hold repeats a scrape for so many minutes: nothing happens meanwhile.
func (t *tape) hold(s series, minutes int) {
	for range minutes {
		*t = append(*t, s)
	}
}

// gap is a time in which the proxy cannot be reached.
func (t *tape) gap(minutes int) {
	t.hold(series{`up{job="wasmproxy",instance="n1"}`: "0"}, minutes)
}

// rule is an alerting rule.
type rule struct {
	Alert, Expr string
	For         string
}

// check plays the tape to promtool. The alerts fire within their time after the minute in which the failure was
// planted, and no other alert does at any minute.
func (t *tape) check(l *lab, planted int, alerts []string) {
	l.t.Helper()
	file := l.builder.ProjectFile("deploy/prometheus/alerts.yaml")
	text, err := os.ReadFile(file)
	l.must(err)
	var rules struct{ Groups []struct{ Rules []rule } }
	l.must(yaml.Unmarshal(text, &rules))
	type expected struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type query struct {
		Expr string     `json:"expr"`
		At   string     `json:"eval_time"`
		Want []expected `json:"exp_samples"`
	}
	var queries []query
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			fires := query{fmt.Sprintf(`count by (alertname) (count_over_time(ALERTS{alertname=%q,alertstate="firing"}[1d]))`, r.Alert), fmt.Sprintf("%dm", len(*t)-1), []expected{}}
			if slices.Contains(alerts, r.Alert) {
				takes, err := time.ParseDuration("0" + r.For)
				l.must(err)
				if fires.Want = []expected{{fmt.Sprintf("{alertname=%q}", r.Alert), 1}}; planted > 0 {
					fires.At = fmt.Sprintf("%dm", planted+int(takes.Minutes())+1)
					before := query{fires.Expr, fmt.Sprintf("%dm", planted-1), []expected{}}
					queries = append(queries, before)
				}
			}
			queries = append(queries, fires)
		}
	}
	type input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	var inputs []input
	for name, values := range t.values(string(text)) {
		inputs = append(inputs, input{name, values})
	}
	test, err := json.Marshal(map[string]any{"rule_files": []string{file}, "evaluation_interval": "1m", "tests": []any{map[string]any{
		"interval": "1m", "input_series": inputs, "promql_expr_test": queries,
	}}}) // JSON is YAML
	l.must(errors.Join(err, os.WriteFile(l.path("rules_test.yaml"), test, 0o644)))
	if out, err := exec.Command(filepath.Join(l.bin, "promtool"), "test", "rules", l.path("rules_test.yaml")).CombinedOutput(); err != nil {
		l.t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}

// values are the series that the rules name, a value for each minute.
func (t *tape) values(rules string) map[string]string {
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(wasmproxy_\w+|up|process_start_time_seconds)\b`).FindAllString(rules, -1) {
		names[name] = true
	}
	all := map[string][]string{}
	for minute, scrape := range *t {
		for name, value := range scrape {
			if base, _, _ := strings.Cut(name, "{"); names[base] {
				all[name] = append(all[name], slices.Repeat([]string{"_"}, minute-len(all[name]))...)
				all[name] = append(all[name], value)
			}
		}
		for name := range maps.Keys(all) { // of a series that has ended Prometheus says so
			if len(all[name]) == minute {
				all[name] = append(all[name], "stale")
			}
		}
	}
	joined := map[string]string{}
	for name, values := range all {
		joined[name] = strings.Join(values, " ")
	}
	return joined
}
