package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// caching is a node whose daemon compiles into a directory, and does not run.
func caching(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.config.CacheDir = filepath.Join(n.dir, "cache")
	return n
}

// within holds a change to the second in which it must count, where time is measured.
func (n *node) within(what string, change func()) {
	n.t.Helper()
	start := time.Now()
	change()
	if took := time.Since(start); os.Getenv("WASMPROXY_WALL_CLOCK") != "" && took > time.Second {
		n.t.Errorf("%s took %v", what, took)
	}
}

// held are guests that the compiler takes for ever about, as many as are compiled at
// a time, and the files that want them, which come before all others.
func (n *node) held() (guests []string) {
	n.t.Helper()
	all := []string{"everything", "conflict", "puller", "teller", "counter", "patient", "remember", "repeat", "loop", "spin"}
	for i, guest := range all[:min(max(2, runtime.GOMAXPROCS(0)), len(all))] {
		n.hold(guest)
		n.put(fmt.Sprintf("0%d-held.wasm", i), guest)
		guests = append(guests, guest)
	}
	return guests
}

// While modules are compiled, as many as can be at a time, every change counts that
// needs no compiler: a removal, the refusal of a plugin that must not be ignored, policy, hooks and match.
func TestChangesCountWhileModulesCompile(t *testing.T) {
	n := caching(t)
	n.put("10-reject.wasm", "reject")
	n.put("20-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-reject", "20-quota")
	if _, err := n.runPod(t.Context(), "refused"); err == nil {
		t.Error("the plugin that is to be removed refuses nothing")
	}
	for _, guest := range n.held() {
		n.awaitCompiler(guest)
	}
	n.within("a removal", func() {
		n.remove("10-reject.wasm")
		n.await("plugin removed", "10-reject")
		n.awaitActive("20-quota")
	})
	_, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.within("a refusal", func() {
		n.put("90-policy.json", `{"failure-policy": "Fail"}`)
		n.put("90-policy.wasm", "trap")
		n.await("plugins active", "plugins=[20-quota]", "refusing=[90-policy]")
	})
	if _, err := n.runPod(t.Context(), "web-2"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "plugin 90-policy: PreRunPodSandbox: plugin is not loaded: it is being loaded") {
		t.Errorf("a plugin that must not be ignored and waits for a compiler: %v", err)
	}
	n.remove("90-policy.wasm")
	n.awaitActive("20-quota")
	for _, what := range []string{`{"runtime-hooks": []}`, `{"match": {"namespaces": ["other"]}}`} {
		n.within(what, func() {
			n.put("20-quota.json", what)
			n.awaitActive("20-quota")
		})
		if got := n.annotation(t, "example.com/quota"); got != "" {
			t.Errorf("with %s the plugin was asked", what)
		}
	}
	n.put("20-quota.json", `{"dry-run": true}`)
	n.awaitActive("20-quota")
	if got := n.annotation(t, "example.com/quota"); got != "" {
		t.Error("with dry-run the plugin changed something")
	}
	n.put("20-quota.json", `{}`)
	n.awaitActive("20-quota")
	if got := n.annotation(t, "example.com/quota"); got != "200000" {
		t.Errorf("the plugin set %q", got)
	}
}

// annotation creates a container and returns what the runtime got.
func (n *node) annotation(t *testing.T, key string) string {
	t.Helper()
	pod, err := n.runPod(t.Context(), podName(int(time.Now().UnixNano())))
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	n.runtime.RuntimeService.Lock()
	defer n.runtime.RuntimeService.Unlock()
	return n.runtime.RuntimeService.Containers[id].Annotations[key]
}

// A daemon that starts with modules that take long before one whose code is in the
// cache has the latter at once.
func TestCompiledCodeGoesFirst(t *testing.T) {
	n := caching(t)
	n.put("90-quota.wasm", "quota")
	n.put("90-quota.json", `{"failure-policy": "Fail"}`)
	n.start(daemon.Run)
	n.awaitActive("90-quota")
	n.end()
	n.held()
	n.start(daemon.Run) // which waits for a second, since the others take longer
	n.within("the load", func() { n.awaitActive("90-quota") })
	if got := n.annotation(t, "example.com/quota"); got != "200000" {
		t.Errorf("the plugin set %q", got)
	}
}

// A module that takes long holds up no other one that has to be compiled.
func TestSlowModuleDelaysItsOwnPluginOnly(t *testing.T) {
	n := caching(t)
	release := n.hold("noop")
	n.put("10-slow.wasm", "noop")
	n.start(daemon.Run)
	n.awaitCompiler("noop")
	n.put("20-quota.wasm", "quota")
	n.awaitActive("20-quota")
	release()
	n.awaitActive("10-slow", "20-quota")
}

// A plugin that is removed, or replaced, while it is loaded gives the compiler up, and
// never becomes active.
func TestRemovedAndReplacedWhileLoading(t *testing.T) {
	n := caching(t)
	n.hold("noop")
	n.put("10-slow.wasm", "noop")
	n.put("20-slow.wasm", "noop")
	n.start(daemon.Run)
	n.awaitCompiler("noop")
	n.put("10-slow.wasm", "quota")
	n.awaitActive("10-slow")
	n.remove("20-slow.wasm")
	n.await("plugin removed", "20-slow")
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		drafts, _ := filepath.Glob(filepath.Join(n.config.CacheDir, "draft-*"))
		if len(drafts) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("something is compiled into %v", drafts)
		}
	}
	n.end()
	if log := n.log.String(); strings.Contains(log, "name=noop") || strings.Contains(log, "plugin not loaded") {
		t.Errorf("the log says:\n%s", log)
	}
}

// A module that the compiler refused is not compiled again because some other file
// has changed, but is when its own settings have.
func TestFailedModuleIsNotCompiledAgain(t *testing.T) {
	n := caching(t)
	n.broken("quota")
	n.put("10-bad.wasm", "quota")
	n.start(daemon.Run)
	n.await("plugin not loaded", "10-bad", "the test wants it so")
	for i := range 3 {
		n.put(fmt.Sprintf("2%d-noop.wasm", i), "noop")
		n.await("plugin loaded", fmt.Sprintf("plugin=2%d-noop", i))
	}
	n.put("10-bad.wasm", "quota") // the same, written again
	n.put("10-bad.json", `{"failure-policy": "Fail"}`)
	n.put("30-noop.wasm", "noop")
	n.await("plugin loaded", "plugin=30-noop")
	if got := n.compiled("quota"); got != 1 {
		t.Errorf("compiled %d times", got)
	}
	n.put("10-bad.json", `{"config": 1}`)
	n.await("plugin not loaded", "10-bad", "the test wants it so")
	if got := n.compiled("quota"); got != 2 {
		t.Errorf("compiled %d times once its settings had changed", got)
	}
}

// A file that is replaced is one generation, and touches no other plugin: none of its
// instances is made anew, and its ticks go on in their own period.
func TestOneReplacedFileIsOneGeneration(t *testing.T) {
	n := newNode(t)
	n.put("10-ticker.wasm", "ticker")
	n.put("20-noop.wasm", "noop")
	n.start(daemon.Run)
	n.awaitActive("10-ticker", "20-noop")
	first := n.log.String()
	const replaced = 6
	start := time.Now()
	for i := range replaced {
		n.put("20-noop.wasm", []string{"quota", "noop"}[i%2])
		n.await("plugin replaced", "plugin=20-noop")
		n.awaitActive("10-ticker", "20-noop")
	}
	n.put("20-noop.wasm", "wrong-signature") // broken, and no generation
	n.await("plugin not loaded", "the previous version stays active", "20-noop")
	n.await("plugin=10-ticker hook=Tick")
	took := time.Since(start)
	log := n.log.String()[len(first):]
	if got := strings.Count(log, "plugins active"); got != replaced {
		t.Errorf("%d generations for %d replaced files", got, replaced)
	}
	if strings.Contains(log, "plugin=10-ticker function=wp_abi") {
		t.Error("an instance of the other plugin was made anew")
	}
	if got := strings.Count(log, "plugin=10-ticker hook=Tick"); got > int(took/time.Second)+2 { // the first may be late
		t.Errorf("%d ticks of one each second in %v", got, took)
	}
}

// The log has a line for each state that an operator wants to know of, in order.
func TestStatesAreLogged(t *testing.T) {
	n := newNode(t)
	n.put("10-it.wasm", "quota")
	n.start(daemon.Run)
	n.await(`msg="plugin loaded" plugin=10-it name=quota`)
	n.put("10-it.wasm", "noop")
	n.await(`msg="plugin loading" plugin=10-it`)
	n.await(`msg="plugin replaced" plugin=10-it name=noop`)
	n.await(`msg="plugin closed" plugin=10-it`)
	n.put("10-it.wasm", "trap")
	n.put("10-it.json", `{"config": "`+strings.Repeat("x", 1<<19)+`"}`)
	n.await(`msg="plugin replaced" plugin=10-it name=trap`)
	n.remove("10-it.wasm")
	n.await(`msg="plugin removed" plugin=10-it`)
	n.await(`msg="plugin closed" plugin=10-it`)
	n.await("no plugins active")
}

// A plugin that fails in Synchronize is told again, with a growing pause, and becomes
// active once that goes well: its files need not change.
func TestSynchronizeIsTriedAgain(t *testing.T) {
	n := serving(t, map[string]string{"20-quota.wasm": "quota"})
	n.awaitActive("20-quota")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.put("10-witness.json", witnessConfig("!a"))
	n.put("10-witness.wasm", "witness")
	n.await("plugin not loaded", "10-witness", "Synchronize")
	n.await("plugin log", "hook=Synchronize") // once more
	_, err = n.kubelet.RemovePodSandbox(t.Context(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
	n.must(err)
	n.awaitActive("10-witness", "20-quota")
	if got := strings.Count(n.log.String(), "plugin not loaded"); got != 1 {
		t.Errorf("the same failure is logged %d times", got)
	}
}

// A plugin for which there is no memory left is tried again: its files need not change once there is.
func TestPluginWithoutMemoryIsTriedAgain(t *testing.T) {
	n := newNode(t)
	n.config.GuestMemory = "80Mi"
	for _, id := range []string{"10-hungry", "20-hungry"} { // 62.5 MiB each
		n.put(id+".wasm", "memory-hungry")
		n.put(id+".json", `{"limits": {"memory": "64Mi"}}`)
	}
	n.start(daemon.Run)
	n.await("plugin not loaded", "hungry", "do not fit into the memory budget of all guests")
	loaded, other := "10-hungry", "20-hungry"
	if strings.Contains(n.log.String(), `msg="plugin not loaded" plugin=10-hungry`) {
		loaded, other = other, loaded
	}
	n.remove(loaded + ".wasm")
	n.await("plugin removed", loaded)
	n.await("plugin loaded", other)
}
