package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// Values of an active plugin end when its files do not allow them any more, though nothing of it has to be loaded: of pods
// that its match excludes now, and of hooks that it has no longer. Others stay.
func TestValuesEndWithWhatAllowedThem(t *testing.T) {
	for _, ends := range []string{`{"match": {"namespaces": ["other"]}}`, `{"match": {"containers": ["!app"]}}`, `{"runtime-hooks": ["PreUpdateContainerResources"]}`} {
		n, idle := withFiles(t)
		n.put("10-qos.json", `{"match": {"namespaces": ["te*"]}, "runtime-hooks": ["PreCreateContainer"], "order": "99", "failure-policy": "Fail"}`)
		n.await("plugins active", `plugins="[20-quota 10-qos]"`)
		n.put("10-qos.json", ends)
		n.await("cgroup file undone", "file=cpu.idle", "value=0")
		n.holds(idle, "0")
		n.end()
		if log := n.log.String(); strings.Count(log, "cgroup file undone") != 1 || strings.Contains(log, "plugin replaced") {
			t.Errorf("%s: the log says:\n%s", ends, log)
		}
	}
}

// Whatever changes in the files of a plugin with Synchronize, it is told of the pods that match now, those that did not
// before and those that did.
func TestEveryChangeTellsOfThePods(t *testing.T) {
	n := serving(t, map[string]string{"20-quota.wasm": "quota", "10-witness.wasm": "witness", "10-witness.json": `{"config": "a", "match": {"namespaces": ["other"]}}`})
	n.await("plugins active", "10-witness")
	_, err := n.runPod(t.Context(), "web")
	n.must(err)
	for i, files := range []string{
		`{"config": "a"}`, `{"config": "a", "match": {"namespaces": ["test"]}}`, `{"config": "a", "order": "30"}`, `{"config": "a", "failure-policy": "Fail"}`,
		`{"config": "a", "runtime-hooks": ["Synchronize"]}`, `{"config": "a", "dry-run": true}`, `{"config": "a", "dry-run": false}`,
	} {
		n.put("10-witness.json", files)
		n.await("plugin log", "plugin=10-witness", "hook=Synchronize", "pod=web")
		if got := witness(n.log.String())["a"]["web"]; len(got) != i+1 {
			t.Errorf("%s: the plugin has heard %v", files, got)
		}
	}
	n.end()
}

// dryRuns are files with which a plugin is in dry-run: the only change, and one that has it loaded again.
var dryRuns = []string{`{"dry-run": true}`, `{"dry-run": true, "limits": {"fuel": 50000000}}`}

// The values of a plugin end when it is set to dry-run, and no restart brings them back.
func TestDryRunEndsValues(t *testing.T) {
	for _, files := range dryRuns {
		n, idle := withFiles(t)
		n.put("10-qos.json", files)
		n.await("cgroup file undone", "file=cpu.idle", "value=0")
		n.holds(idle, "0")
		n.end()
		n.staysUndone(idle)
	}
}

// So they do if it was set to dry-run while the proxy was down. Nothing of it is written before it is loaded.
func TestDryRunThatBeganWhileTheProxyWasDown(t *testing.T) {
	n := newNode(t)
	n.config.DataDir = filepath.Join(n.dir, "data")
	idle := n.runIdle()
	n.end()
	n.put("10-qos.json", dryRuns[0])
	n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
	n.staysUndone(idle)
}

// staysUndone starts the proxy again, and ends it when the plugins are active: cpu.idle of a container is kubelet's then, and
// nobody has written it meanwhile.
func (n *node) staysUndone(idle string) {
	n.t.Helper()
	n.log = newJournal()
	n.start(daemon.Run)
	n.await("store filled")
	n.awaitActive("10-qos", "20-quota")
	n.end()
	n.holds(idle, "0")
	if log := n.log.String(); strings.Contains(log, "file=cpu.idle") {
		n.t.Errorf("cpu.idle was written:\n%s", log)
	}
	if state := n.recorded(); strings.Contains(state, "10-qos") {
		n.t.Errorf("the state is still %s", state)
	}
}
