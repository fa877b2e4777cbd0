package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// withFiles is a node with a state directory, a cgroup tree of plain files, and a running
// container that plugin qos has made idle. idle is its cpu.idle.
func withFiles(t *testing.T) (n *node, idle string) {
	t.Helper()
	n = newNode(t)
	return n, n.runIdle()
}

// runIdle starts a node's daemon and such a container.
func (n *node) runIdle() (idle string) {
	n.t.Helper()
	return n.runIdleWith("10-qos", "20-quota")
}

// runIdleWith is runIdle with more plugins, which are all of these.
func (n *node) runIdleWith(plugins ...string) (idle string) {
	n.t.Helper()
	n.config.CgroupRoot, n.config.CgroupMode, n.config.StateDir = filepath.Join(n.dir, "cgroup"), "v2", filepath.Join(n.dir, "run", "state")
	n.must(os.Mkdir(n.config.CgroupRoot, 0o755))
	n.put("20-quota.wasm", "quota")
	qos, err := os.ReadFile("../../plugins-wasm/qos/qos.wasm")
	n.must(err)
	n.putRaw("10-qos.wasm", string(qos))
	n.start(daemon.Run)
	n.awaitActive(plugins...)
	config := podNamed("web")
	config.Annotations = map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}
	pod, err := n.kubelet.RunPodSandbox(n.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	n.must(err)
	c, err := n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod.GetPodSandboxId(), SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	n.must(err)
	group := filepath.Join(n.config.CgroupRoot, "kubepods/podweb", c.GetContainerId())
	n.must(os.MkdirAll(group, 0o755))
	idle = filepath.Join(group, "cpu.idle")
	n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
	_, err = n.kubelet.StartContainer(n.t.Context(), &runtimeapi.StartContainerRequest{ContainerId: c.GetContainerId()})
	n.must(err)
	n.holds(idle, "1")
	return idle
}

func (n *node) holds(file, want string) {
	n.t.Helper()
	if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != want {
		n.t.Errorf("%s is %q, %v; want %s", filepath.Base(file), got, err, want)
	}
}

// A value that is overwritten while the proxy is down is repaired at the next start, without a
// plugin that asks again.
func TestValuesAreRepairedAfterARestart(t *testing.T) {
	n, idle := withFiles(t)
	n.end()
	n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
	n.start(daemon.Run)
	n.await("cgroup file repaired", "plugin=10-qos", "file=cpu.idle", "value=1", "found=0")
	n.holds(idle, "1")
}

// The values of a plugin that is removed are undone, also if it is the last one.
func TestValuesOfARemovedPluginAreUndone(t *testing.T) {
	for _, last := range []bool{false, true} {
		n, idle := withFiles(t)
		if last {
			n.remove("20-quota.wasm")
			n.awaitActive("10-qos")
		}
		n.remove("10-qos.wasm")
		n.await("cgroup file undone", "file=cpu.idle", "value=0")
		n.holds(idle, "0")
		n.end()
		state := n.recorded()
		if strings.Contains(state, "10-qos") || strings.Contains(state, "cpu.idle") || last == strings.Contains(state, "20-quota") {
			t.Errorf("the state is still %s", state)
		}
	}
}

// recorded is what a start of the proxy would know of values.
func (n *node) recorded() (text string) {
	n.t.Helper()
	l, err := enforce.OpenLedger(n.t.Context(), n.config.StateDir, observe.Discard())
	n.must(err)
	defer l.Close()
	for _, id := range l.Objects() {
		for t, v := range l.Record(id).Values() {
			text += fmt.Sprintf("%v %s: %+v\n", id, t, v)
		}
	}
	return text
}

// So are those of a plugin that is removed while the proxy is down, also if none is left.
func TestValuesOfAPluginRemovedWhileTheProxyWasDown(t *testing.T) {
	for _, last := range []bool{false, true} {
		n, idle := withFiles(t)
		n.end()
		n.remove("10-qos.wasm")
		if last {
			n.remove("20-quota.wasm")
		}
		n.start(daemon.Run)
		n.await("cgroup file undone", "file=cpu.idle", "value=0")
		n.holds(idle, "0")
		n.end()
	}
}

// So are those of a plugin's version that is replaced while the proxy is down, by one that has
// Synchronize and does not ask for them. Another start of the same version changes nothing.
func TestValuesOfAVersionReplacedWhileTheProxyWasDown(t *testing.T) {
	n, idle := withFiles(t)
	for range 2 {
		n.end()
		n.log = newJournal()
		n.start(daemon.Run)
		n.awaitActive("10-qos", "20-quota")
		n.holds(idle, "1")
	}
	n.end()
	n.put("10-qos.json", `{"match": {"namespaces": ["none"]}}`)
	n.put("10-qos.wasm", "witness")
	n.start(daemon.Run)
	n.await("cgroup file undone", "file=cpu.idle", "value=0")
	n.holds(idle, "0")
}

// A plugin directory that cannot be read when the proxy starts does not mean that its plugins are
// removed: their values stay until it is read, also if it holds none then.
func TestValuesStayWhileThePluginDirectoryCannotBeRead(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		n, idle := withFiles(t)
		n.end()
		n.must(os.Chmod(n.config.PluginDir, 0o777)) // which the proxy does not trust
		if !emptied {
			n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
		}
		n.start(daemon.Run)
		if log := n.log.String(); !strings.Contains(log, "plugin directory not read, its plugins stay as they are") {
			t.Errorf("the log does not say that the directory is not read:\n%s", log)
		}
		pod, err := n.runPod(t.Context(), "other")
		n.must(err)
		_, err = n.createContainer(t.Context(), pod, "app")
		n.must(err)
		if strings.Contains(n.log.String(), "cgroup file undone") {
			t.Error("the values of plugins are undone")
		}
		if emptied {
			for _, name := range []string{"20-quota.wasm", "10-qos.wasm"} {
				n.remove(name)
			}
		}
		n.must(os.Chmod(n.config.PluginDir, 0o755))
		if emptied {
			n.await("cgroup file undone", "file=cpu.idle")
		} else {
			n.await("cgroup file repaired", "plugin=10-qos", "file=cpu.idle", "value=1", "found=0")
		}
		n.end()
	}
}

// The CPU quota that a plugin has changed is kubelet's again after the plugin is removed, also if
// that was while the proxy was down.
func TestFieldsOfARemovedPluginAreReset(t *testing.T) {
	for _, down := range []bool{false, true} {
		n, _ := withFiles(t)
		before := n.updates()
		if down {
			n.end()
		}
		n.remove("20-quota.wasm")
		if down {
			n.start(daemon.Run)
		}
		n.awaitActive("10-qos")
		for end := time.Now().Add(patience); n.updates() == before && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		n.end()
		if after := n.updates(); after != before+1 {
			t.Errorf("down %v: there were %d updates, and then %d", down, before, after)
		}
	}
}

// At a start, the first plugin and the connection have the store filled at the same time. No
// record is dropped because one of them does not have all pods yet.
func TestRecordsOutliveEveryStart(t *testing.T) {
	n, idle := withFiles(t)
	for i := range 100 {
		_, err := n.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podNamed(fmt.Sprint("other", i))})
		n.must(err)
	}
	for range 5 {
		n.end()
		n.must(os.WriteFile(idle, []byte("0\n"), 0o644))
		n.start(daemon.Run)
		n.await("cgroup file repaired", "plugin=10-qos", "file=cpu.idle")
		n.holds(idle, "1")
	}
}

// The CRI fields of the last plugins are reset, too, also if they are removed while the proxy is
// down and the store stays empty.
func TestFieldsOfTheLastPluginsAreReset(t *testing.T) {
	for _, down := range []bool{false, true} {
		n, _ := withFiles(t)
		before := n.updates()
		if down {
			n.end()
		}
		n.remove("20-quota.wasm")
		n.remove("10-qos.wasm")
		if down {
			n.start(daemon.Run)
		}
		for end := time.Now().Add(patience); n.updates() == before && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		n.end()
		if after := n.updates(); after == before {
			t.Errorf("down %v: no update has followed the %d before:\n%s", down, before, n.log)
		}
	}
}

// The records of containers that went while the proxy was down are dropped when the store is
// filled.
func TestRecordsOfContainersThatAreGone(t *testing.T) {
	n, _ := withFiles(t)
	n.end()
	n.runtime.RuntimeService.Lock()
	clear(n.runtime.RuntimeService.Containers)
	clear(n.runtime.RuntimeService.Sandboxes)
	n.runtime.RuntimeService.Unlock()
	n.start(daemon.Run)
	n.await("store filled", "containers=0")
	n.awaitActive("10-qos", "20-quota")
	if state := n.recorded(); state != "" {
		t.Errorf("the state directory has %s", state)
	}
}

// TestStateDirectoryOfOthers: what somebody else could have written there is not read, and the start fails.
func TestStateDirectoryOfOthers(t *testing.T) {
	for name, give := range map[string]func(dir string) error{
		"mode":             func(dir string) error { return os.Chmod(dir, 0o770) },
		"owner":            func(dir string) error { return os.Chown(dir, 12345, -1) },
		"mode of a parent": func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "owner" && os.Geteuid() != 0 {
				t.Skip("only root gives directories away")
			}
			n := newNode(t)
			n.config.StateDir = filepath.Join(n.dir, "parent", "state")
			n.must(os.MkdirAll(n.config.StateDir, 0o700))
			n.must(give(n.config.StateDir))
			err := daemon.Run(t.Context(), n.config, nil)
			if err == nil || !strings.Contains(err.Error(), "state-dir: "+n.config.StateDir) || !strings.Contains(err.Error(), "0700") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// A state directory that cannot be made is an error that names it.
func TestStateDirectoryThatCannotBeMade(t *testing.T) {
	n := newNode(t)
	n.config.StateDir = filepath.Join(n.dir, "file", "state")
	n.must(os.WriteFile(filepath.Join(n.dir, "file"), nil, 0o644))
	if err := daemon.Run(t.Context(), n.config, nil); err == nil || !strings.Contains(err.Error(), "state-dir") || !strings.Contains(err.Error(), n.config.StateDir) {
		t.Errorf("the error is %v", err)
	}
}
