package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// ProxyEndpoint is where wasmproxy listens.
const ProxyEndpoint = "unix:///run/wasmproxy/wasmproxy.sock"

// Proxy is a running wasmproxy before containerd.
type Proxy struct {
	process    *process
	PluginDir  string // watched by it
	HookDir    string // watched by it
	generation int    // how often it has been started
}

// Plugin is a file for the plugin directory: a built plugin under the name that orders it.
type Plugin struct {
	File    string // name in the plugin directory, such as 10-qos.wasm
	Program string // name among the workspace's programs
}

// The plugins that the tests use.
var (
	QoS      = Plugin{File: "10-qos.wasm", Program: "qos.wasm"}           // the stock plugin
	Noop     = Plugin{File: "20-noop.wasm", Program: "noop.wasm"}         // every hook, does nothing
	Annotate = Plugin{File: "30-annotate.wasm", Program: "annotate.wasm"} // every hook that can change annotations, does
	Witness  = Plugin{File: "40-witness.wasm", Program: "witness.wasm"}   // tells what it sees
)

// StartProxy starts wasmproxy with these plugins. When the test ends it is
// stopped if it is still running.
func StartProxy(t testing.TB, plugins ...Plugin) *Proxy {
	t.Helper()
	dir := t.TempDir()
	p := &Proxy{PluginDir: filepath.Join(dir, "plugins.d"), HookDir: filepath.Join(dir, "hookserver.d")}
	if err := errors.Join(os.Mkdir(p.PluginDir, 0o755), os.Mkdir(p.HookDir, 0o755)); err != nil {
		t.Fatalf("making the plugin directories: %v", err)
	}
	for _, plugin := range plugins {
		p.install(t, plugin)
	}
	p.Start(t)
	return p
}

func (p *Proxy) install(t testing.TB, plugin Plugin) {
	t.Helper()
	module, err := os.ReadFile(isolation.Current().Program(plugin.Program))
	if err == nil {
		err = os.WriteFile(filepath.Join(p.PluginDir, plugin.File), module, 0o644)
	}
	if err != nil {
		t.Fatalf("installing the plugin %s: %v", plugin.File, err)
	}
}

// Start starts wasmproxy, for the first time or again after Stop or Kill.
func (p *Proxy) Start(t testing.TB) {
	t.Helper()
	p.generation++
	cmd := exec.Command(isolation.Current().Program("wasmproxy"), "serve",
		"--listen", ProxyEndpoint, "--backend", ContainerdEndpoint,
		"--plugin-dir", p.PluginDir, "--hook-dir", p.HookDir, "--cache-dir", filepath.Join(filepath.Dir(p.PluginDir), "cache"),
		"--log-format", "json", "--log-level", "debug")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // it reads WASMPROXY_*, and refuses what it does not know
	p.process = startProcess(t, fmt.Sprintf("wasmproxy-%d", p.generation), cmd)
	process := p.process
	t.Cleanup(func() {
		if err := process.stop(); err != nil {
			t.Errorf("stopping wasmproxy: %v", err)
		}
	})
	awaitCRI(t, ProxyEndpoint, p.process.alive)
	p.awaitPlugins(t)
}

// awaitPlugins waits until every plugin of the directory takes part: calls pass
// while plugins are being loaded.
func (p *Proxy) awaitPlugins(t testing.TB) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.PluginDir, "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, file := range files {
		want = append(want, strings.TrimSuffix(filepath.Base(file), ".wasm"))
	}
	Eventually(t, readyTimeout, "wasmproxy has loaded its plugins", func() error {
		p.Records(t, "plugins in force", func(line []byte) error {
			var record struct{ Plugins []string }
			err := json.Unmarshal(line, &record)
			got = record.Plugins
			return err
		})
		if !slices.Equal(got, want) {
			return fmt.Errorf("it has %v of %v", got, want)
		}
		return nil
	})
}

// Kill ends wasmproxy without warning.
func (p *Proxy) Kill() { p.process.kill() }

// Served is what wasmproxy logs when it ends.
type Served struct {
	Calls        map[string]int `json:"calls"`         // by full method
	Hooks        map[string]int `json:"hooks"`         // by hook
	HookFailures map[string]int `json:"hook_failures"` // by hook
}

// Stop ends wasmproxy as systemd would and returns its account of what it served.
func (p *Proxy) Stop(t testing.TB) Served {
	t.Helper()
	if err := p.process.stop(); err != nil {
		t.Fatalf("stopping wasmproxy: %v", err)
	}
	var served []Served
	p.Records(t, "served", func(line []byte) error {
		served = append(served, Served{})
		return json.Unmarshal(line, &served[len(served)-1])
	})
	if len(served) != 1 {
		t.Fatalf("wasmproxy logged %d accounts of what it served, want 1", len(served))
	}
	return served[0]
}

// Records calls each for every line with this message in the log of the running or last wasmproxy.
func (p *Proxy) Records(t testing.TB, message string, each func(line []byte) error) {
	t.Helper()
	log, err := os.Open(p.process.log)
	if err != nil {
		t.Fatalf("reading wasmproxy's log: %v", err)
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var record struct{ Msg string }
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			continue // a line that is still being written, or a stack
		}
		if record.Msg != message {
			continue
		}
		if err := each(lines.Bytes()); err != nil {
			t.Fatalf("reading wasmproxy's log: %s: %v", lines.Bytes(), err)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("reading wasmproxy's log: %v", err)
	}
}
