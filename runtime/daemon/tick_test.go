package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// ticking is a node with a running container, a cgroup tree of plain files and
// testdata/wat/ticker.
func ticking(t *testing.T, description string) (n *node, burst string) {
	t.Helper()
	n = newNode(t)
	n.config.CgroupRoot, n.config.CgroupMode = filepath.Join(n.dir, "cgroup"), "v2"
	n.must(os.Mkdir(n.config.CgroupRoot, 0o755))
	n.put("20-repeat.wasm", "repeat")
	n.start(daemon.Run)
	n.await("plugins active", "20-repeat")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	group := filepath.Join(n.config.CgroupRoot, "kubepods/podweb", id)
	n.must(os.MkdirAll(group, 0o755))
	burst = filepath.Join(group, "cpu.max.burst")
	n.must(os.WriteFile(burst, []byte("0\n"), 0o644))
	_, err = n.kubelet.StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: id})
	n.must(err)
	n.put("10-ticker.json", description)
	n.put("10-ticker.wasm", "ticker")
	n.await("plugins active", "10-ticker")
	return n, burst
}

func (n *node) updates() int {
	return len(slices.DeleteFunc(n.runtime.RuntimeService.GetCalls(), func(c string) bool { return c != "UpdateContainerResources" }))
}

// A plugin changes another container from its ticks: by an update that goes
// straight to the runtime, and in its cgroup.
func TestTick(t *testing.T) {
	n, burst := ticking(t, `{"grant": ["update.others"]}`)
	n.await("plugin changed field", "plugin=10-ticker", "hook=Tick", `field="other container.resources.cpu_quota"`, "value=70000")
	n.await("cgroup file written", "plugin=10-ticker", "hook=Tick", "file=cpu.max.burst", "value=30000")
	n.await("plugin changed field", "plugin=10-ticker", "hook=Tick") // once more
	if got, _ := os.ReadFile(burst); strings.TrimSpace(string(got)) != "30000" || n.updates() == 0 {
		t.Errorf("cpu.max.burst is %q after %d updates", got, n.updates())
	}
	n.remove("10-ticker.wasm")
	n.await("plugin removed", "10-ticker")
	n.await("cgroup file undone", "file=cpu.max.burst", "value=0")
	n.end()
	if got, _ := os.ReadFile(burst); strings.TrimSpace(string(got)) != "0" {
		t.Errorf("cpu.max.burst is %q without the plugin", got)
	}
	if log := n.log.String(); strings.Contains(log, "not carried out") || strings.Contains(log, "PreUpdateContainerResources") {
		t.Errorf("want neither failures nor hooks of the updates:\n%s", log)
	}
}

// Ticks change what the operator's match accepts, and nothing else.
func TestTickWithinMatch(t *testing.T) {
	n, burst := ticking(t, `{"grant": ["update.others"], "match": {"namespaces": ["other"]}}`)
	n.must(n.runLabelled("other", "db", ""))
	for range 2 { // when the second tick has ended, the first one's changes are carried out
		n.await("plugin changed field", "plugin=10-ticker", "hook=Tick", `field="other container.resources.cpu_quota"`, "value=70000")
	}
	outside := filepath.Base(filepath.Dir(burst))
	if got, _ := os.ReadFile(burst); strings.TrimSpace(string(got)) != "0" || n.updates() == 0 {
		t.Errorf("cpu.max.burst outside of the match is %q after %d updates", got, n.updates())
	}
	for line := range strings.Lines(n.log.String()) {
		if strings.Contains(line, "plugin changed field") && strings.Contains(line, outside) {
			t.Error("outside of the match: " + line)
		}
	}
}

// Ticks end with the plugin, whichever generation is there.
func TestTicksEnd(t *testing.T) {
	n, _ := ticking(t, `{"grant": ["update.others"]}`)
	n.await("plugin changed field", "hook=Tick")
	n.remove("10-ticker.wasm")
	n.await("plugin removed", "10-ticker")
	n.await("plugins active")
	for end := time.Now().Add(patience); ; {
		before := n.updates() // one may be under way
		time.Sleep(1500 * time.Millisecond)
		after := n.updates()
		if after == before {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d updates in 1.5 s, long after the plugin went", after-before)
		}
	}
}

// What a plugin declares and is not granted is said, with the line to write, and
// refused.
func TestNotGranted(t *testing.T) {
	n, burst := ticking(t, `{}`)
	if line := `msg="plugin needs capabilities that it is not granted" plugin=10-ticker capabilities=[update.others] remedy="add  \"grant\": [\"update.others\"]  to 10-ticker.json"`; !strings.Contains(n.log.String(), line) {
		t.Errorf("the log lacks %s", line)
	}
	n.await("plugin failed and was ignored", "hook=Tick")
	if got, _ := os.ReadFile(burst); strings.TrimSpace(string(got)) != "0" || n.updates() != 0 {
		t.Errorf("cpu.max.burst is %q after %d updates", got, n.updates())
	}
}

// Under a dry run the same is logged, and nothing is changed.
func TestDryRun(t *testing.T) {
	n, burst := ticking(t, `{"grant": ["update.others"], "dry-run": true}`)
	n.await("plugin would change field", "plugin=10-ticker", "hook=Tick", `field="other container.resources.cpu_quota"`, "value=70000")
	if got, _ := os.ReadFile(burst); strings.TrimSpace(string(got)) != "0" || n.updates() != 0 {
		t.Errorf("cpu.max.burst is %q after %d updates", got, n.updates())
	}
}

// Limits beyond what any plugin gets are refused with the file and the key.
func TestLimitsOfAFile(t *testing.T) {
	n := serving(t, map[string]string{"10-quota.json": `{"limits": {"fuel": 9000000000000000000}}`, "10-quota.wasm": "quota"})
	n.await("plugin file rejected", "10-quota.json", "limits: fuel")
}
