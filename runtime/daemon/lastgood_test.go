package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// quotaJSON describes 10-quota by a JSON file that names the module, so that all of it can be damaged.
const quotaJSON = `{"wasm-module": "q.wasm", "match": {"containers": ["app"]}, "failure-policy": "Fail"}`

// keeping is a node that keeps last good versions, and whose 10-quota is good and kept.
func keeping(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	n.put("q.wasm", "quota")
	n.put("10-quota.json", quotaJSON)
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.awaitKept("10-quota", `\"Fail\"`)
	return n
}

// awaitKept waits until the last good version of a plugin is saved whose JSON has this text.
func (n *node) awaitKept(id, text string) {
	n.t.Helper()
	var b []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if b, _ = os.ReadFile(filepath.Join(n.config.DataDir, "last-good", "plugins", id+".json")); strings.Contains(string(b), text) {
			return
		}
	}
	n.t.Fatalf("saved is %q, want %s; the log:\n%s", b, text, n.log)
}

// quotaServes checks that the plugin does what its good files say: it sets the quota of containers that are called app.
func (n *node) quotaServes(name string) {
	n.t.Helper()
	pod, err := n.runPod(n.t.Context(), name)
	n.must(err)
	id, err := n.createContainer(n.t.Context(), pod, "app")
	n.must(err)
	if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/quota"]; got != "200000" {
		n.t.Errorf("%s: the runtime got annotation %q: the last good version does not serve", name, got)
	}
}

// awaitProblem waits until the proxy is not ready for a reason with all these words.
func (n *node) awaitProblem(words ...string) {
	n.t.Helper()
	n.awaitSocket()
	body := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, body = n.ofAdmin("/readyz")
		for line := range strings.Lines(body) {
			if containsAll(line, words) {
				return
			}
		}
	}
	n.t.Fatalf("/readyz has no line with %q: %s", words, body)
}

// damages are what makes the files of 10-quota bad.
var damages = []struct {
	name string
	do   func(n *node, json, module string) error
	says string
}{
	{"cut off", func(n *node, json, _ string) error { return os.WriteFile(json, []byte(quotaJSON[:40]), 0o644) }, "10-quota.json: is not JSON"},
	{"empty", func(n *node, json, _ string) error { return os.Truncate(json, 0) }, "10-quota.json: is empty"},
	{"of another mode", func(n *node, json, _ string) error { return os.Chmod(json, 0o664) }, "10-quota.json: is writable by its group"},
	{"of another owner", func(n *node, json, _ string) error { return os.Chown(json, 12345, -1) }, "10-quota.json: belongs to user 12345"},
	{"of an unknown key", func(n *node, json, _ string) error {
		return os.WriteFile(json, []byte(`{"wasm-module": "q.wasm", "mach": {"containers": ["none"]}}`), 0o644)
	}, `10-quota.json: unknown key "mach"`},
	{"of another digest", func(n *node, json, _ string) error {
		return os.WriteFile(json, []byte(`{"wasm-module": "q.wasm", "sha256": "`+strings.Repeat("0", 64)+`"}`), 0o644)
	}, "10-quota.json: sha256: "},
	{"without its module", func(n *node, _, module string) error { return os.Remove(module) }, "10-quota.json: wasm-module: there is no q.wasm beside it"},
	{"with an empty module", func(n *node, _, module string) error { return os.Truncate(module, 0) }, "q.wasm: is not a WebAssembly module"},
	{"with a module cut off", func(n *node, _, module string) error { return os.Truncate(module, 200) }, "loading plugin 10-quota: "},
	{"that fail to load", func(n *node, json, module string) error {
		n.put("q.wasm", "configure-refuse")
		return os.WriteFile(json, []byte(`{"wasm-module": "q.wasm", "config": 1, "match": {"containers": ["none"]}}`), 0o644)
	}, "loading plugin 10-quota: wp_configure"},
	{"in a directory that everyone may write", func(n *node, _, _ string) error { return os.Chmod(n.config.PluginDir, 0o777) }, "plugins.d: is writable by everyone"},
}

// TestBadFileChangesNothing: the last good version stays active as a whole, with its code and all its settings, also
// over a restart, and the file is named with what runs instead. Once the files are good, they count.
func TestBadFileChangesNothing(t *testing.T) {
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			if strings.Contains(damage.name, "owner") && os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			n := keeping(t)
			json, module := filepath.Join(n.config.PluginDir, "10-quota.json"), filepath.Join(n.config.PluginDir, "q.wasm")
			n.must(damage.do(n, json, module))
			n.awaitProblem("plugin 10-quota: ", damage.says, "; version 1.0.0 of ", " stays active")
			n.quotaServes("before")
			n.end()
			n.start(daemon.Run)
			n.awaitActive("10-quota")
			n.quotaServes("after")
			n.awaitProblem("plugin 10-quota: ", damage.says, "; version 1.0.0 of ", " stays active")
			n.awaitMetric(`wasmproxy_plugin_load_failed{plugin="10-quota"} 1`)
			n.must(os.Chmod(n.config.PluginDir, 0o755))
			n.put("q.wasm", "noop")
			n.put("10-quota.json", `{"wasm-module": "q.wasm"}`)
			n.await("plugin replaced", "10-quota", "name=noop")
			n.awaitMetric(`wasmproxy_plugin_load_failed{plugin="10-quota"} 0`)
			n.awaitKept("10-quota", `"{\"wasm-module\": \"q.wasm\"}"`)
		})
	}
}

// TestFailedLoadChangesNoSetting: of files that cannot be loaded nothing counts. A policy that is only tried is not
// enforced, with the code that it had.
func TestFailedLoadChangesNoSetting(t *testing.T) {
	n := newNode(t)
	n.put("reject.wasm", "reject")
	n.put("10-reject.json", `{"wasm-module": "reject.wasm", "dry-run": true}`)
	n.start(daemon.Run)
	n.awaitActive("10-reject")
	n.put("reject.wasm", "configure-refuse")
	n.put("10-reject.json", `{"wasm-module": "reject.wasm", "failure-policy": "Fail", "config": 1}`)
	n.await("plugin not loaded", "the previous version stays active", "10-reject")
	if _, err := n.runPod(t.Context(), "web"); err != nil {
		t.Errorf("what is only tried refuses: %v", err)
	}
	n.put("reject.wasm", "reject")
	n.put("10-reject.json", `{"wasm-module": "reject.wasm"}`)
	n.awaitActive("10-reject")
	if _, err := n.runPod(t.Context(), "web"); err == nil {
		t.Error("it refuses nothing once its file is good")
	}
}

// TestDisabledPluginStaysDisabled while its JSON is bad, also over a restart.
func TestDisabledPluginStaysDisabled(t *testing.T) {
	n := keeping(t)
	n.put("10-quota.json", `{"wasm-module": "q.wasm", "enabled": false}`)
	n.await("plugin removed", "10-quota")
	n.awaitKept("10-quota", `\"enabled\": false`)
	n.put("20-noop.wasm", "noop")
	n.awaitActive("20-noop")
	n.put("10-quota.json", `{"wasm-module": "q.wasm", "enab`)
	n.awaitProblem("plugin 10-quota: ", "is not JSON", "the plugin stays disabled")
	n.end()
	n.start(daemon.Run)
	n.awaitActive("20-noop")
	n.awaitProblem("plugin 10-quota: ", "is not JSON", "the plugin stays disabled")
	n.put("10-quota.json", quotaJSON)
	n.awaitActive("10-quota", "20-noop")
}

// TestRemovedPluginIsForgotten, also if its files were removed while no proxy ran. A directory that cannot be read
// is no removal.
func TestRemovedPluginIsForgotten(t *testing.T) {
	n := keeping(t)
	n.end()
	n.must(os.Chmod(n.config.PluginDir, 0o777))
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.end()
	n.must(os.Chmod(n.config.PluginDir, 0o755))
	n.remove("q.wasm")
	n.remove("10-quota.json")
	n.start(daemon.Run)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		plugins, _ := filepath.Glob(filepath.Join(n.config.DataDir, "last-good", "*", "*"))
		if len(plugins) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%q are left", plugins)
		}
	}
	n.put("10-quota.json", `{"wasm-module": "q.wa`)
	n.awaitProblem("plugin 10-quota: ", "the plugin is not loaded")
}

// TestLastGoodThatIsNotTrusted is as if there never was one, with a warning.
func TestLastGoodThatIsNotTrusted(t *testing.T) {
	for name, damage := range map[string]func(n *node, entry, module string) error{
		"an entry that others may read":  func(_ *node, entry, _ string) error { return os.Chmod(entry, 0o644) },
		"an entry that is cut off":       func(_ *node, entry, _ string) error { return os.Truncate(entry, 30) },
		"a module that is cut off":       func(_ *node, _, module string) error { return os.Truncate(module, 30) },
		"a module that others may write": func(_ *node, _, module string) error { return os.Chmod(module, 0o622) },
		"no module":                      func(_ *node, _, module string) error { return os.Remove(module) },
		"a directory that others may write": func(n *node, _, _ string) error {
			return os.Chmod(n.config.DataDir, 0o777)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := keeping(t)
			n.end()
			modules, _ := filepath.Glob(filepath.Join(n.config.DataDir, "last-good", "modules", "*"))
			if len(modules) != 1 {
				t.Fatalf("the modules are %q", modules)
			}
			n.must(damage(n, filepath.Join(n.config.DataDir, "last-good", "plugins", "10-quota.json"), modules[0]))
			n.put("10-quota.json", "{")
			n.start(daemon.Run)
			if log := n.log.String(); !strings.Contains(log, `level=WARN msg="last good version of a plugin`) {
				t.Errorf("no line says so:\n%s", log)
			}
			n.awaitProblem("plugin 10-quota: ", "the plugin is not loaded")
			n.awaitPods("web")
			n.put("10-quota.json", quotaJSON)
			n.awaitActive("10-quota")
		})
	}
}

// TestNewVersionAfterARestart: the version before is active until the one is loaded that came while no proxy ran.
func TestNewVersionAfterARestart(t *testing.T) {
	n := keeping(t)
	n.end()
	n.put("q.wasm", "noop")
	n.start(daemon.Run)
	n.await("plugin loaded", "10-quota", "name=quota")
	n.await("plugin replaced", "10-quota", "name=noop")
}

// TestBypassWithADamagedModule: when the bypass ends, the last good version is loaded from its copy. Meanwhile its policy
// is shown. That of files that never were good is not known.
func TestBypassWithADamagedModule(t *testing.T) {
	n := bypassable(t)
	n.config.DataDir = filepath.Join(n.dir, "data")
	n.put("q.wasm", "quota")
	n.put("10-quota.json", quotaJSON)
	n.put("20-none.json", `{"failure-policy": "Fail", "wasm-module`)
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.awaitKept("10-quota", `\"Fail\"`)
	n.must(os.Truncate(filepath.Join(n.config.PluginDir, "q.wasm"), 2))
	n.awaitProblem("plugin 10-quota: ", " stays active")
	n.bypass("")
	n.awaitMetric("wasmproxy_bypass 1")
	all, err := n.admin().Plugins(t.Context())
	n.must(err)
	if p := all.Plugins; len(p) != 2 || p[0].Policy != "Fail" || p[1].Policy != "" {
		t.Errorf("in the bypass, the plugins are %+v", p)
	}
	n.endBypass()
	n.awaitProblem("plugin 10-quota: ", " stays active")
	n.quotaServes("web")
}
