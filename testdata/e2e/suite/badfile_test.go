package suite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestBadFile cuts off the JSON of an active plugin whose failures are ignored, and kills wasmproxy: pods start through
// the plugin as it was, and whatever an operator looks at names the file.
func TestBadFile(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Noop)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	first := staticPod("before", ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, first)
	kubelet.AwaitReady(t, first)
	id := strings.TrimSuffix(node.Noop.File, ".wasm")
	node.Eventually(t, time.Minute, "the last good version is saved", func() error {
		_, err := os.Stat(filepath.Join(proxy.DataDir, "last-good", "plugins", id+".json"))
		return err
	})
	file := filepath.Join(proxy.PluginDir, id+".json")
	if err := os.Truncate(file, 5); err != nil {
		t.Fatal(err)
	}
	expectNamed(t, proxy, id, file)

	proxy.Kill()
	proxy.Start(t)
	second := staticPod("after", ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, second)
	kubelet.AwaitReady(t, second)
	expectNamed(t, proxy, id, file)
	if found := proxy.Doctor(t); !slices.Contains(found, "plugin-files plugin files") {
		t.Errorf("doctor finds %q", found)
	}
	served := proxy.Stop(t)
	if served.Hooks["PreRunPodSandbox"] == 0 || len(served.HookFailures) > 0 {
		t.Errorf("the plugin was called in %v, and failed in %v", served.Hooks, served.HookFailures)
	}
}

// expectNamed waits until status, /readyz and the metrics tell of a plugin's bad file.
func expectNamed(t *testing.T, proxy *node.Proxy, id, file string) {
	t.Helper()
	node.Eventually(t, time.Minute, "wasmproxy names the bad file", func() error {
		var status struct{ NotReady []string }
		if err := proxy.Ask(t.Context(), &status, "status"); err != nil {
			return err
		}
		for resource, words := range map[string][]string{
			"/readyz":  {id, file + ": is not JSON", "stays active"},
			"/metrics": {fmt.Sprintf("wasmproxy_plugin_load_failed{plugin=%q} 1", id), fmt.Sprintf("wasmproxy_plugin_state{plugin=%q,state=\"active\"} 1", id)},
		} {
			said, err := proxy.Get(t.Context(), resource)
			if err != nil {
				return err
			}
			for _, word := range words {
				if !strings.Contains(said, word) {
					return fmt.Errorf("%s does not have %q:\n%s", resource, word, said)
				}
			}
		}
		if !slices.ContainsFunc(status.NotReady, func(reason string) bool { return strings.Contains(reason, file) }) {
			return fmt.Errorf("status has %q", status.NotReady)
		}
		return nil
	})
}

// TestBadSettingsFile breaks the settings file, and kills wasmproxy: pods start with the last good settings, and whatever an
// operator looks at says so.
func TestBadSettingsFile(t *testing.T) {
	node.StartRuntime(t)
	file := filepath.Join(t.TempDir(), "wasmproxy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("drain-timeout: 4s\n")
	proxy := node.StartProxyWith(t, []string{"--config", file}, node.Noop)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	first := staticPod("before", ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, first)
	kubelet.AwaitReady(t, first)
	node.Eventually(t, time.Minute, "the last good settings are saved", func() error {
		all, err := filepath.Glob(filepath.Join(proxy.DataDir, "last-good", "settings-*.json"))
		if err == nil && len(all) == 0 {
			err = errors.New("there is no copy")
		}
		return err
	})
	write("drain-timeuot: 4s\n")
	expectSettings(t, proxy, false)

	proxy.Kill()
	proxy.Start(t)
	second := staticPod("after", ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, second)
	kubelet.AwaitReady(t, second)
	expectSettings(t, proxy, true)
	if found := proxy.Doctor(t); !slices.Contains(found, "settings-active "+file) {
		t.Errorf("doctor finds %q", found)
	}
	proxy.Stop(t)
}

// expectSettings waits until status, /readyz and the metrics tell of the bad settings file.
func expectSettings(t *testing.T, proxy *node.Proxy, lastGood bool) {
	t.Helper()
	const wrong = `unknown key "drain-timeuot"`
	node.Eventually(t, time.Minute, "wasmproxy tells of the bad settings file", func() error {
		var status struct {
			NotReady []string
			Settings struct {
				LastGood bool
				Error    string
			}
		}
		if err := proxy.Ask(t.Context(), &status, "status"); err != nil {
			return err
		}
		if status.Settings.LastGood != lastGood || !strings.Contains(status.Settings.Error, wrong) || len(status.NotReady) == 0 {
			return fmt.Errorf("status has %+v", status)
		}
		for resource, words := range map[string]string{"/readyz": wrong, "/metrics": "wasmproxy_settings_load_failed 1"} {
			said, err := proxy.Get(t.Context(), resource)
			if err != nil {
				return err
			}
			if !strings.Contains(said, words) {
				return fmt.Errorf("%s does not have %q:\n%s", resource, words, said)
			}
		}
		return nil
	})
}
