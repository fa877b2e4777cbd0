package suite_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// How much TestChange does. `make e2e-change` gives more.
var (
	changeFor   = flag.Duration("change-for", 10*time.Second, "how long TestChange records, and a fifth of it is a probation that passes")
	changePods  = flag.Int("change-pods", 5, "pods of TestChange, in fives")
	changeCalls = flag.Int("change-calls", 50, "calls of the shadow in TestChange")
)

// The plugins of TestChange. The first is changed.
const (
	changedID  = "10-qos"
	besideID   = "20-memory-qos"
	everyFifth = 5
)

// CPU bursts of the pods that ask for one, in microseconds, by the versions of qos: the next one gives half of what is asked for.
const (
	burstAsked = "4000"
	burstNext  = "2000"
)

// changing is a node on which a plugin is changed, as docs/changing-plugins.md says.
type changing struct {
	proxy      *node.Proxy
	kubelet    *node.Kubelet
	client     node.CRI // of the proxy
	settings   string   // file
	pods       []*core.Pod
	recordings map[string]string // files, by plugin
	calls      int               // of create and update, by turns
}

// TestChange changes a plugin on a node whose pods come, change and go, with all that the node has for it: a recording, a replay,
// a shadow, and a probation that passes. Then come versions that trap on one pod in five, under either policy, and
// one under which the proxy crashes at each start: the node goes back by itself. What running pods were given holds all the while.
// There is no API server.
func TestChange(t *testing.T) {
	node.StartRuntime(t)
	c := &changing{settings: filepath.Join(t.TempDir(), "wasmproxy.yaml"), recordings: map[string]string{}}
	c.proxy = node.StartProxy(t)
	text := fmt.Sprintf("plugin-dir: %s\nadmin-socket: %s\n", c.proxy.PluginDir, node.AdminSocket)
	if err := os.WriteFile(c.settings, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.kubelet = node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	c.client = node.DialCRI(t, node.RuntimeKind().ProxyEndpoint)
	c.pods = changingPods("changing", *changePods)
	c.deliver(t, "qos", "", "--wait", "1m")
	for _, part := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"record", c.record},
		{"replay", c.replay},
		{"shadow", c.shadow},
		{"probation passes", c.pass},
		{"trap, Ignore", c.trapIgnored},
		{"trap, Fail", c.trapRefuses},
		{"retry", c.retry},
		{"crash", c.crash},
	} {
		start := time.Now()
		if !t.Run(part.name, part.run) {
			return
		}
		t.Logf("%s: %v", part.name, time.Since(start).Round(time.Second))
	}
}

// changingPods are so many pods. The first of each five asks for a burst, so that qos-trap.wasm traps for it; the second is idle.
func changingPods(name string, n int) (all []*core.Pod) {
	for i := range n {
		container := ticking("main", core.ResourceRequirements{Limits: quantities("50m", "64Mi"), Requests: quantities("20m", "16Mi")})
		container.Command = node.Sleep
		pod := staticPod(fmt.Sprintf("%s-%d", name, i), container)
		switch i % everyFifth {
		case 0:
			pod.Annotations = map[string]string{"qos.wasmproxy.io/cpu-burst": burstAsked}
		case 1:
			pod.Annotations = map[string]string{"qos.wasmproxy.io/cpu-idle": "1"}
		}
		all = append(all, pod)
	}
	return all
}

func asksForBurst(pod *core.Pod) bool { return pod.Annotations["qos.wasmproxy.io/cpu-burst"] != "" }

// deliver brings a module as qos, with keys of its JSON beside those that each has.
func (c *changing) deliver(t *testing.T, module, keys string, args ...string) {
	t.Helper()
	from := t.TempDir()
	for file, program := range map[string]string{changedID: module, besideID: "memory-qos"} {
		settings := `{"timeout": "20s", "grant": ["update.others"`
		if file == changedID {
			settings += "]" + keys
		} else {
			settings += `, "cgroup.read"]`
		}
		code, err := os.ReadFile(isolation.Current().Program(program + ".wasm"))
		err = errors.Join(err, os.WriteFile(filepath.Join(from, file+".wasm"), code, 0o644),
			os.WriteFile(filepath.Join(from, file+".json"), []byte(settings+"}"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	c.run(t, append([]string{"plugin", "deliver", from, "--owner", "platform", "--config", c.settings}, args...)...)
}

// run runs a command of wasmproxy, which must succeed, and returns what it prints.
func (c *changing) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := wasmproxy(t, args...)
	if err != nil {
		t.Fatalf("wasmproxy %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// wasmproxy runs a command, and returns all that it prints.
func wasmproxy(t *testing.T, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), isolation.Current().Program("wasmproxy"), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// pluginState is what `plugin list` tells of a plugin.
type pluginState struct {
	ID, State                   string
	Active                      *struct{ Version string }
	Pending                     *struct{ State string }
	Failure                     *struct{ Error, Meanwhile string }
	Probation                   time.Time
	Shadow                      *struct{ State, Reason, Version string }
	Calls, Failures, Rejections int
}

// plugin is the state of the plugin that is changed.
func (c *changing) plugin(t *testing.T) pluginState {
	t.Helper()
	var all struct{ Plugins []pluginState }
	if err := c.proxy.Ask(t.Context(), &all, "plugin", "list"); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all.Plugins, func(p pluginState) bool { return p.ID == changedID })
	if i < 0 {
		t.Fatalf("the plugins are %+v", all.Plugins)
	}
	return all.Plugins[i]
}

// await waits until the plugin is as is says.
func (c *changing) await(t *testing.T, what string, is func(p pluginState) bool) {
	t.Helper()
	node.Eventually(t, time.Minute, changedID+" "+what, func() error {
		if p := c.plugin(t); !is(p) {
			text, _ := json.Marshal(p)
			return fmt.Errorf("it is %s", text)
		}
		return nil
	})
}

// call creates a container in the sandbox of the pod whose turn it is, and removes it, or updates the one that it has, as kubelet
// would. An idle one is not updated: it is not idle in the meantime. It returns the pod.
func (c *changing) call(t *testing.T, create bool) (pod *core.Pod, err error) {
	t.Helper()
	pod = c.pods[c.calls%len(c.pods)]
	c.calls++
	if !create && (asksForBurst(pod) || len(pod.Annotations) == 0) {
		return pod, update(t, node.RuntimeKind().ProxyEndpoint, containerID(t, pod), quota(5000))
	}
	sandboxes, err := c.client.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": node.PodName(pod)},
		State:         &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY},
	}})
	if err != nil || len(sandboxes.Items) != 1 {
		t.Fatalf("pod %s has %d sandboxes, want 1: %v", pod.Name, len(sandboxes.GetItems()), err)
	}
	in := sandboxes.Items[0]
	made, err := c.client.CreateContainer(t.Context(), &cri.CreateContainerRequest{
		PodSandboxId:  in.Id,
		SandboxConfig: &cri.PodSandboxConfig{Metadata: in.Metadata, Annotations: in.Annotations, Labels: in.Labels, Linux: &cri.LinuxPodSandboxConfig{}},
		Config: &cri.ContainerConfig{
			Metadata: &cri.ContainerMetadata{Name: fmt.Sprintf("beside-%d", c.calls)}, Command: node.Sleep,
			Image: &cri.ImageSpec{Image: image.Busybox, UserSpecifiedImage: image.Busybox},
			Linux: &cri.LinuxContainerConfig{
				Resources: quota(5000),
				SecurityContext: &cri.LinuxContainerSecurityContext{ // without it CRI-O takes the pod's PID namespace, which is none
					NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_CONTAINER},
				},
			},
		},
	})
	if err == nil {
		node.Eventually(t, time.Minute, "the container is gone", func() error { // which kubelet does not know, and may remove, too
			_, err := c.client.RemoveContainer(t.Context(), &cri.RemoveContainerRequest{ContainerId: made.ContainerId})
			return err
		})
	}
	return pod, err
}

// value is what a plugin has set of a running pod.
type value struct{ pod, group, file, want string }

func (v value) check() error {
	if err := cgroupfs.Check(v.group, v.file, v.want); err != nil {
		return fmt.Errorf("pod %s: %w", v.pod, err)
	}
	return nil
}

// values are those of pods, with this burst.
func values(t *testing.T, pods []*core.Pod, burst string) (all []value) {
	t.Helper()
	for _, pod := range pods {
		group := cgroupfs.Inner(find(t, containerID(t, pod)))
		switch {
		case asksForBurst(pod):
			all = append(all, value{pod.Name, group, "cpu/cpu.cfs_burst_us", burst})
		case len(pod.Annotations) > 0:
			all = append(all, value{pod.Name, group, "cpu/cpu.idle", "1"})
		}
	}
	return all
}

// awaitValues waits until pods have the values of a version, which it is given after it is active.
func awaitValues(t *testing.T, pods []*core.Pod, burst string) {
	t.Helper()
	all := values(t, pods, burst)
	node.Eventually(t, time.Minute, "the pods have the values of the version", func() error {
		var errs []error
		for _, v := range all {
			errs = append(errs, v.check())
		}
		return errors.Join(errs...)
	})
}

// hold looks at the values of all pods until the test ends: each must be the same all the while.
func (c *changing) hold(t *testing.T, burst string) {
	t.Helper()
	all, stop, stopped := values(t, c.pods, burst), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for range time.Tick(50 * time.Millisecond) {
			for _, v := range all {
				if err := v.check(); err != nil {
					t.Errorf("a value does not hold: %v", err)
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}
