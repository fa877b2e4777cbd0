package daemon_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// shadow gives a plugin a shadow of this guest, and waits until that is called, or is not loaded.
func (n *node) shadow(id, guest, before, settings, state string) {
	n.t.Helper()
	dir := filepath.Join(n.config.PluginDir, ".modules")
	n.must(os.MkdirAll(dir, 0o755))
	n.must(os.WriteFile(filepath.Join(dir, guest+".wasm"), []byte(module(n.t, guest)), 0o644))
	json := fmt.Sprintf(`{%s"shadow": {"wasm-module": ".modules/%s.wasm"%s}}`, before, guest, settings)
	n.put(id+".json", json)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(json)))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		p := n.plugin(id)
		if p.Active != nil && p.Active.Settings == digest && p.Shadow != nil && p.Shadow.State == state {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("the shadow is %+v; the log:\n%s", p.Shadow, n.log)
		}
	}
}

// muchTime gives shadows as much as a busy machine may need: a quarter of it.
const muchTime = `"timeout": "1m", `

// shadowed is a node with this guest as a plugin, and another as its shadow.
func shadowed(t *testing.T, twin, before, guest, settings string) (n *node, pod string) {
	t.Helper()
	n = newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	before += muchTime
	n.put("10-twin.wasm", twin)
	n.put("10-twin.json", "{"+strings.TrimSuffix(before, ", ")+"}")
	n.start(daemon.Run)
	n.awaitActive("10-twin")
	n.awaitSocket()
	n.shadow("10-twin", guest, before, settings, "active")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	return n, pod
}

// createOf creates a container as kubelet does, with what it knows of the pod.
func (n *node) createOf(name, pod, container string) (string, error) {
	resp, err := n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod, SandboxConfig: podNamed(name),
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: container}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	return resp.GetContainerId(), err
}

// report is what came of the shadow of 10-twin.
func (n *node) report() plugin.ShadowReport {
	n.t.Helper()
	r, err := n.admin().Shadow(n.t.Context(), "10-twin")
	n.must(err)
	return r
}

// rows are those of a call, as target, what the twin wants and what the shadow wants.
func rows(c plugin.ShadowCall) (all []string) {
	show := func(v *string) string {
		if v == nil {
			return "-"
		}
		return *v
	}
	for _, r := range c.Rows {
		all = append(all, r.Target+": "+show(r.Was)+", "+show(r.Is))
	}
	return all
}

// A shadow is compared with its twin, call by call, and whatever it does, the calls go on with what the twin wants.
func TestShadow(t *testing.T) {
	quota := `container.annotations["example.com/quota"]: 200000, -`
	for _, test := range []struct {
		guest, settings string
		outcome         observe.ShadowOutcome
		rows            []string
		says            string // its error
	}{
		{"quota", "", observe.ShadowSame, nil, ""},
		{"conflict", "", observe.ShadowDifferent, []string{quota, "container.resources.cpu_quota: 200000, 150000"}, ""},
		{"noop", "", observe.ShadowDifferent, []string{quota, "container.resources.cpu_quota: 200000, -"}, ""},
		{"witness", `, "config": "a"`, observe.ShadowDifferent, []string{quota, "container.resources.cpu_quota: 200000, -"}, ""},
		{"trap", "", observe.ShadowFailed, []string{"outcome: -, failed", quota, "container.resources.cpu_quota: 200000, -"}, "unreachable"},
		{"loop", `, "timeout": "100ms"`, observe.ShadowFailed, []string{"outcome: -, failed", quota, "container.resources.cpu_quota: 200000, -"}, ""},
		{"reject", "", observe.ShadowRefused, []string{"outcome: -, refused with code 9: not on this node", quota, "container.resources.cpu_quota: 200000, -"}, ""},
	} {
		t.Run(test.guest, func(t *testing.T) {
			n, pod := shadowed(t, "quota", `"failure-policy": "Fail", `, test.guest, test.settings)
			const calls = 7 // so many that the breaker of one that fails opens
			for i := range calls {
				id, err := n.createOf("web", pod, fmt.Sprint("app-", i))
				n.must(err)
				if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/quota"]; got != "200000" {
					t.Fatalf("the runtime got annotation %q", got)
				}
			}
			r := n.report()
			if r.Outcomes[test.outcome] != calls || test.outcome != observe.ShadowSame && len(r.Calls) != calls {
				t.Fatalf("the outcomes are %v, with %d calls; the log:\n%s", r.Outcomes, len(r.Calls), n.log)
			}
			for i, c := range r.Calls {
				about := fmt.Sprintf("PreCreateContainer test/web/app-%d", i)
				if got := c.Hook + " " + c.Object; got != about || !slices.Equal(rows(c), test.rows) || i == 0 && !strings.Contains(c.Error, test.says) {
					t.Errorf("call %d is %s: %q, %s", i, got, rows(c), c.Error)
				}
			}
			_, text := n.ofAdmin("/metrics")
			if line := fmt.Sprintf(`wasmproxy_plugin_shadow_total{outcome="%s",plugin="10-twin"} %d`, test.outcome, calls); !strings.Contains(text, line) {
				t.Errorf("the metrics lack %s", line)
			}
			p := n.plugin("10-twin")
			if failed := test.outcome == observe.ShadowFailed; (p.Shadow.Breaker == "open") != failed || p.Breaker != "closed" || p.Failures != 0 || p.Calls != calls {
				t.Errorf("the plugin is %+v, its shadow %+v", p, p.Shadow)
			}
			n.end()
		})
	}
}

// The shadow begins with a copy of its twin's values, and what it keeps is its own.
func TestShadowHasItsOwnValues(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	const grant = `"grant": ["state.kv"]`
	n.put("10-twin.wasm", "counter")
	n.put("10-twin.json", "{"+muchTime+grant+"}")
	n.start(daemon.Run)
	n.awaitActive("10-twin")
	n.awaitSocket()
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	count := func(want string) {
		t.Helper()
		id, err := n.createContainer(t.Context(), pod, "app-"+want)
		n.must(err)
		if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/count"]; got != want {
			t.Errorf("the count is %q, want %q", got, want)
		}
	}
	count("a")
	count("b")
	n.shadow("10-twin", "counter", muchTime+grant+", ", ", "+grant, "active")
	count("c")
	count("d")
	if r := n.report(); r.Outcomes[observe.ShadowSame] != 2 {
		t.Errorf("the outcomes are %v, the calls %+v", r.Outcomes, r.Calls)
	}
}

// All calls of a pod go to the shadow, or none.
func TestShadowOfSomePods(t *testing.T) {
	n, _ := shadowed(t, "quota", "", "quota", `, "sample": 50`)
	var pods []string
	for i := range 40 {
		pod, err := n.runPod(t.Context(), podName(i))
		n.must(err)
		pods = append(pods, pod)
	}
	var sampled []uint64
	for i := range 2 {
		for j, pod := range pods {
			_, err := n.createOf(podName(j), pod, fmt.Sprint("app-", i))
			n.must(err)
		}
		sampled = append(sampled, n.report().Outcomes[observe.ShadowSame])
	}
	if sampled[0] == 0 || sampled[0] == 40 || sampled[1] != 2*sampled[0] {
		t.Errorf("of 40 pods the shadow was called for %d, and after two calls of each it was called %d times", sampled[0], sampled[1])
	}
}

// A shadow comes, changes, is bad and goes, and the plugin stays loaded, with its values.
func TestChangeOfAShadowLeavesThePlugin(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	idle := n.runIdle()
	n.awaitSocket()
	version := *n.plugin("10-qos").Active
	for _, test := range []struct{ guest, settings, state, reason string }{
		{"noop", "", "active", ""},
		{"noop", `, "sample": 7`, "active", ""},
		{"wrong-signature", "", "failed", "it imports wp1.get as"},
		{"noop", `, "sample": 101`, "failed", "10-qos.json: shadow: sample: 101 is not between 1 and 100 percent"},
		{"noop", `, "failure-policy": "Fail"`, "failed", `unknown key "failure-policy"`},
		{"trap", "", "active", ""},
	} {
		n.shadow("10-qos", test.guest, "", test.settings, test.state)
		p := n.plugin("10-qos")
		for end := time.Now().Add(patience); !strings.Contains(p.Shadow.Reason, test.reason) && time.Now().Before(end); p = n.plugin("10-qos") {
			time.Sleep(10 * time.Millisecond) // the shadow follows a moment after the settings
		}
		if p.State != "active" || p.Failure != nil || p.Pending != nil || !strings.Contains(p.Shadow.Reason, test.reason) {
			t.Errorf("%s%s: the plugin is %+v, its shadow %+v", test.guest, test.settings, p, p.Shadow)
		}
		if test.state == "failed" {
			n.await("shadow of a plugin not loaded", "10-qos")
		}
		n.holds(idle, "1")
	}
	n.put("10-qos.json", `{}`)
	for end := time.Now().Add(patience); n.plugin("10-qos").Shadow != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the shadow does not end")
		}
	}
	if now := n.plugin("10-qos").Active; now.Digest != version.Digest {
		t.Errorf("the version is %+v, and was %+v", now, version)
	}
	n.holds(idle, "1")
	n.end()
	if log := n.log.String(); strings.Contains(log, "plugin replaced") || strings.Contains(log, "cgroup file undone") || strings.Contains(log, "plugin removed") {
		t.Errorf("the log says:\n%s", log)
	}
}

// What a shadow says is without secrets.
func TestSecretsOfAShadow(t *testing.T) {
	for _, config := range []string{"", "f", "r", "a", "t"} {
		t.Run(config, func(t *testing.T) {
			n, pod := shadowed(t, "quota", "", "teller", fmt.Sprintf(`, "grant": ["env", "state.kv"], "config": %q`, config))
			n.must(n.createSecret(pod))
			r := n.report()
			text, err := json.Marshal(r)
			n.must(err)
			if len(r.Calls) != 1 || strings.Contains(string(text), password[:len(password)/2]) || !strings.Contains(string(text), plugin.Redacted) && config != "t" {
				t.Errorf("the report is %s", text)
			}
			n.end()
			n.discreet()
		})
	}
}
