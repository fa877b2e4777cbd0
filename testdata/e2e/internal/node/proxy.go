package node

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// Proxy is a running wasmproxy before the container runtime.
type Proxy struct {
	process   *process
	PluginDir string   // watched by it
	HookDir   string   // watched by it
	CacheDir  string   // of compiled plugins
	StateDir  string   // of what a restart does not lose
	DataDir   string   // of what a reboot does not lose
	Program   string   // of the workspace, that Start starts; "": the runtime kind's
	backend   string   // endpoint
	settings  []string // flags beyond those that each has
	logs      []string // files, one for each start
}

// Plugin is a file for the plugin directory: a built plugin under the name that orders it.
type Plugin struct {
	File    string   // name in the plugin directory, such as 10-qos.wasm
	Program string   // name among the workspace's programs
	Grant   []string // capabilities beyond those that a plugin gets without a word
	Timeout string   // of a hook; "": hookTime
	Fuel    int      // of a hook; 0: what plugins get
	Config  any      // becomes JSON; nil: it gets none
	Policy  string   // for a failure; "": Ignore
}

// The plugins that the tests use.
var (
	QoS      = Plugin{File: "10-qos.wasm", Program: "qos.wasm", Grant: []string{"update.others"}}    // the stock plugin
	Noop     = Plugin{File: "20-noop.wasm", Program: "noop.wasm"}                                    // every hook, does nothing
	Setter   = Plugin{File: "15-setter.wasm", Program: "setter.wasm", Grant: []string{"pod.limits"}} // sets what annotations ask for
	Annotate = Plugin{File: "30-annotate.wasm", Program: "annotate.wasm"}                            // every hook that can change annotations, does
	Overhead = Plugin{File: "50-overhead.wasm", Program: "overhead.wasm"}                            // annotates pods of one runtime handler

	// Loop never returns. Its time ends before its fuel.
	Loop = Plugin{File: "70-loop.wasm", Program: "loop.wasm", Timeout: "300ms", Fuel: 10_000_000_000}

	// Witness tells what it sees.
	Witness = Plugin{File: "40-witness.wasm", Program: "witness.wasm", Grant: []string{"env"}}
	// Yield changes containers from a control loop of its own.
	Yield = Plugin{File: "60-yield.wasm", Program: "yield.wasm", Grant: []string{"update.others", "state.kv"}}
)

// Roster writes down what it hears of. There may be several, each with a name of its own.
func Roster(id string) Plugin { return Plugin{File: id + ".wasm", Program: "roster.wasm"} }

// AdminSocket answers wasmproxy's other commands.
const AdminSocket = "/run/wasmproxy/admin.sock"

// StartProxy starts wasmproxy with these plugins. When the test ends it is
// stopped if it is still running.
func StartProxy(t testing.TB, plugins ...Plugin) *Proxy {
	t.Helper()
	return StartProxyBefore(t, RuntimeKind().Endpoint, plugins...)
}

// StartProxyBefore is StartProxy before another endpoint than the container runtime's own.
func StartProxyBefore(t testing.TB, backend string, plugins ...Plugin) *Proxy {
	t.Helper()
	return startProxy(t, backend, nil, plugins)
}

// StartProxyWith is StartProxy with further flags.
func StartProxyWith(t testing.TB, settings []string, plugins ...Plugin) *Proxy {
	t.Helper()
	return startProxy(t, RuntimeKind().Endpoint, settings, plugins)
}

func startProxy(t testing.TB, backend string, settings []string, plugins []Plugin) *Proxy {
	t.Helper()
	dir := t.TempDir()
	p := &Proxy{
		PluginDir: filepath.Join(dir, "plugins.d"), HookDir: filepath.Join(dir, "hookserver.d"),
		CacheDir: filepath.Join(dir, "cache"), StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"), backend: backend, settings: settings,
	}
	if err := errors.Join(os.Mkdir(p.PluginDir, 0o755), os.Mkdir(p.HookDir, 0o755)); err != nil {
		t.Fatalf("making the plugin directories: %v", err)
	}
	for _, plugin := range plugins {
		p.Install(t, plugin)
	}
	p.Start(t)
	return p
}

// Remove takes plugins out of the directory.
func (p *Proxy) Remove(t testing.TB, plugins ...Plugin) {
	t.Helper()
	for _, plugin := range plugins {
		file := filepath.Join(p.PluginDir, plugin.File)
		if err := errors.Join(os.Remove(file), os.Remove(strings.TrimSuffix(file, ".wasm")+".json")); err != nil {
			t.Fatalf("removing the plugin %s: %v", plugin.File, err)
		}
	}
}

// Add puts plugins into the directory of the running wasmproxy, and waits until
// they take part.
func (p *Proxy) Add(t testing.TB, plugins ...Plugin) {
	t.Helper()
	for _, plugin := range plugins {
		p.Install(t, plugin)
	}
	p.AwaitPlugins(t)
}

// Install puts a plugin into the directory.
func (p *Proxy) Install(t testing.TB, plugin Plugin) {
	t.Helper()
	module, err := os.ReadFile(isolation.Current().Program(plugin.Program))
	if err == nil {
		err = p.describe(plugin)
	}
	if err == nil {
		err = p.put(plugin.File, module)
	}
	if err != nil {
		t.Fatalf("installing the plugin %s: %v", plugin.File, err)
	}
}

// hookTime is how long a hook may take. It is a matter of milliseconds, unless the machine is busy.
const hookTime = 20 * time.Second

// describe writes the description of a plugin, which says what it is granted and how long its hooks
// may take.
func (p *Proxy) describe(plugin Plugin) error {
	keys := map[string]any{"timeout": cmp.Or(plugin.Timeout, hookTime.String())}
	if plugin.Grant != nil {
		keys["grant"] = plugin.Grant
	}
	if plugin.Fuel != 0 {
		keys["limits"] = map[string]int{"fuel": plugin.Fuel}
	}
	if plugin.Policy != "" {
		keys["failure-policy"] = plugin.Policy
	}
	if plugin.Config != nil {
		keys["config"] = plugin.Config
	}
	description, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	return p.put(strings.TrimSuffix(plugin.File, ".wasm")+".json", description)
}

// put makes a file of the plugin directory appear whole.
func (p *Proxy) put(name string, data []byte) error {
	unfinished := filepath.Join(filepath.Dir(p.PluginDir), name)
	if err := os.WriteFile(unfinished, data, 0o644); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(p.PluginDir, name))
}

// Start starts wasmproxy, for the first time or again after Stop, Kill or AwaitCrash.
func (p *Proxy) Start(t testing.TB) {
	t.Helper()
	p.Launch(t)
	RuntimeKind().await(t, RuntimeKind().ProxyEndpoint, p.process.alive)
	p.AwaitPlugins(t)
}

// Launch is Start for a wasmproxy that may end before it serves.
func (p *Proxy) Launch(t testing.TB) {
	t.Helper()
	kind := RuntimeKind()
	cmd := exec.Command(isolation.Current().Program(cmp.Or(p.Program, kind.program, "wasmproxy")), "serve",
		"--listen", kind.ProxyEndpoint, "--backend", p.backend,
		"--plugin-dir", p.PluginDir, "--hook-dir", p.HookDir, "--cache-dir", p.CacheDir,
		"--state-dir", p.StateDir, "--data-dir", p.DataDir, "--admin-socket", AdminSocket, "--bypass-file", p.bypassFile(), "--node-features-file", filepath.Join(filepath.Dir(p.PluginDir), nodeFeatures),
		"--log-format", "json", "--log-level", "debug")
	if kind.mode != "" {
		cmd.Args = append(cmd.Args, "--mode", kind.mode)
	}
	cmd.Args = append(cmd.Args, p.settings...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // it reads WASMPROXY_*, and refuses what it does not know
	p.process = startProcess(t, fmt.Sprintf("wasmproxy-%d", len(p.logs)+1), cmd)
	p.logs = append(p.logs, p.process.log)
	process := p.process
	t.Cleanup(func() {
		if err := process.stop(); err != nil {
			t.Errorf("stopping wasmproxy: %v", err)
		}
	})
}

// AwaitCrash waits until wasmproxy has ended without being asked.
func (p *Proxy) AwaitCrash(t testing.TB) {
	t.Helper()
	Eventually(t, readyTimeout, "wasmproxy crashes", func() error {
		if p.process.alive() == nil {
			return errors.New("it runs")
		}
		return nil
	})
	p.process.asked = true
}

// Explained is a value of a pod or container as wasmproxy explains it.
type Explained struct{ Kind, Name, Owner, Kernel, State string }

// Explain returns what wasmproxy explains of a pod: the values of the pod, and of each container by
// its name.
func (p *Proxy) Explain(t testing.TB, pod *core.Pod) map[string][]Explained {
	t.Helper()
	type object struct {
		Name   string
		Values []struct {
			Kind, Name, Owner string
			Kernel            *string
			Condition         struct{ State string }
		}
	}
	var report struct {
		Pods []struct {
			object
			Containers []object
		}
	}
	if err := p.Ask(t.Context(), &report, "explain", pod.Namespace+"/"+PodName(pod)); err != nil || len(report.Pods) != 1 {
		t.Fatalf("wasmproxy explains pod %s as %+v (%v)", pod.Name, report, err)
	}
	all := map[string][]Explained{}
	report.Pods[0].Name = "pod"
	for _, o := range append(report.Pods[0].Containers, report.Pods[0].object) {
		for _, v := range o.Values {
			x := Explained{Kind: v.Kind, Name: v.Name, Owner: v.Owner, Kernel: "not known", State: v.Condition.State}
			if v.Kernel != nil {
				x.Kernel = *v.Kernel
			}
			all[o.Name] = append(all[o.Name], x)
		}
	}
	return all
}

// AwaitPlugins waits until every plugin of both directories takes part: calls
// pass while plugins are being loaded.
func (p *Proxy) AwaitPlugins(t testing.TB) {
	t.Helper()
	var want, got []string
	for _, pattern := range []string{filepath.Join(p.PluginDir, "*.wasm"), filepath.Join(p.PluginDir, "*.json"), filepath.Join(p.HookDir, "*.json")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			want = append(want, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
		}
	}
	slices.Sort(want) // the order of the chain
	want = slices.Compact(want)
	Eventually(t, readyTimeout, "wasmproxy has loaded its plugins", func() error {
		p.Records(t, "plugins active", func(line []byte) error {
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

func (p *Proxy) bypassFile() string { return filepath.Join(filepath.Dir(p.PluginDir), "bypass") }

// Bypass takes all plugins out of the way, and waits until that counts. It ends with EndBypass, or with the directory.
func (p *Proxy) Bypass(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(p.bypassFile(), []byte("a test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	Eventually(t, readyTimeout, "plugins are bypassed", func() error {
		err := errors.New("the log does not say so")
		p.Records(t, "plugins are bypassed, every call passes as it came", func([]byte) error {
			err = nil
			return nil
		})
		return err
	})
}

// EndBypass ends a bypass. Plugins are loaded again after that.
func (p *Proxy) EndBypass(t testing.TB) {
	t.Helper()
	if err := os.Remove(p.bypassFile()); err != nil {
		t.Fatal(err)
	}
}

// Kill ends wasmproxy without warning.
func (p *Proxy) Kill() { p.process.kill() }

// PID is that of the running or last wasmproxy.
func (p *Proxy) PID() int { return p.process.cmd.Process.Pid }

// Command is a command of wasmproxy that asks the running one, such as plugin list.
func (p *Proxy) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = append(args, "--config", "", "--admin-socket", AdminSocket)
	cmd := exec.CommandContext(ctx, isolation.Current().Program("wasmproxy"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	return cmd
}

// Ask decodes the answer of a command of wasmproxy that asks the running one, such as status.
func (p *Proxy) Ask(ctx context.Context, into any, args ...string) error {
	var stderr strings.Builder
	cmd := p.Command(ctx, append(args, "-o", "json")...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("wasmproxy %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return json.Unmarshal(out, into)
}

// Get returns what the running wasmproxy answers on its admin socket, whatever the status, such as for /readyz.
func (p *Proxy) Get(ctx context.Context, resource string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", AdminSocket)
	}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://wasmproxy"+resource, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// Served is what wasmproxy logs when it ends.
type Served struct {
	Calls        map[string]int `json:"calls"`         // by method without its service
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
	readRecords(t, p.process.log, message, each)
}

// AllRecords is Records over the logs of all starts.
func (p *Proxy) AllRecords(t testing.TB, message string, each func(line []byte) error) {
	t.Helper()
	for _, log := range p.logs {
		readRecords(t, log, message, each)
	}
}

func readRecords(t testing.TB, file, message string, each func(line []byte) error) {
	t.Helper()
	log, err := os.Open(file)
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
