// Package dockershim_test is `make e2e-dockershim`: kubelet 1.23, the last with dockershim, runs pods on a
// real Docker Engine through wasmproxy in Docker mode.
package dockershim_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

func TestMain(m *testing.M) {
	os.Setenv("E2E_RUNTIME", "docker") // the only one that these tests are for
	node.Main(m, node.Programs(artifact.DockerKubelet()), node.HookServers, node.Raced)
}

// TestPodOfDockershim takes a pod through its life. A wasm plugin changes its CPU quota and a hook server
// its CPU shares, in the request that Docker gets and so in the kernel. The values stay over kills of
// wasmproxy and of the Engine, after which kubelet still has the pod, and exec, logs and the end work.
func TestPodOfDockershim(t *testing.T) {
	engine := node.StartRuntime(t)
	server := node.StartHookServer(t)
	proxy := node.StartProxy(t, node.Setter)
	server.Register(t, proxy, "05-koordlet.json", "Fail", "PreRunPodSandbox", "PreCreateContainer", "PreUpdateContainerResources")
	kubelet := engine.StartDockerKubelet(t, engine.ProxyEndpoint)
	pod := staticPod("limited")
	kubelet.Apply(t, pod)
	id := containerID(kubelet.AwaitReady(t, pod))
	expectLimits(t, engine, id)
	expectCommands(t, kubelet, pod)

	proxy.Kill()
	proxy.Start(t)
	expectUpdate(t, engine, id)
	expectCommands(t, kubelet, pod)
	engine.Restart(t)
	node.Eventually(t, time.Minute, "kubelet has the Engine again", func() error {
		_, err := kubelet.Run(t.Context(), pod, "main", "true")
		return err
	})
	expectUpdate(t, engine, id)
	expectCommands(t, kubelet, pod)
	if now := kubelet.AwaitReady(t, pod); containerID(now) != id || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the container is another one: %+v", now.Status.ContainerStatuses)
	}

	kubelet.Remove(t, pod)
	kubelet.AwaitGone(t, pod)
	node.Eventually(t, time.Minute, "kubelet has removed the containers", func() error {
		out, err := node.Docker(t.Context(), engine.Endpoint, "ps", "--quiet", "--filter", "name=k8s_").CombinedOutput()
		if len(out) != 0 {
			err = fmt.Errorf("there are %s", out)
		}
		return err
	})
	if served := proxy.Stop(t); len(served.HookFailures) != 0 {
		t.Errorf("hooks failed: %v", served.HookFailures)
	}
}

func containerID(pod *core.Pod) string {
	return strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "docker://")
}

// expectLimits compares what the Engine and the kernel have with what the plugin and the hook server want.
func expectLimits(t *testing.T, engine *node.Runtime, id string) {
	t.Helper()
	out, err := node.Docker(t.Context(), engine.Endpoint, "inspect", "--format", "{{.HostConfig.CpuQuota}} {{.HostConfig.CpuShares}} {{.HostConfig.Memory}}", id).CombinedOutput()
	if got := strings.TrimSpace(string(out)); got != "15000 300 67108864" {
		t.Errorf("the Engine has quota, shares and memory %s, want 15000 300 67108864 (%v)", got, err)
	}
	group, err := cgroupfs.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"cpu/cpu.cfs_quota_us": "15000", "cpu/cpu.shares": "300"} {
		if got, err := cgroupfs.Read(group, file); got != want {
			t.Errorf("%s is %s, want %s (%v)", file, got, want, err)
		}
	}
}

// expectUpdate has the container updated as dockershim does for kubelet's CPU manager, which names the
// CPUs alone, and then with values that the plugin and the server change again.
func expectUpdate(t *testing.T, engine *node.Runtime, id string) {
	t.Helper()
	for _, flags := range [][]string{{"--cpuset-cpus=0"}, {"--cpuset-cpus=0-1"}, {"--cpu-quota=20000", "--cpu-shares=400"}} {
		args := append(append([]string{"update"}, flags...), id)
		if out, err := node.Docker(t.Context(), engine.ProxyEndpoint, args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %q: %v\n%s", args, err, out)
		}
		expectLimits(t, engine, id)
	}
}

// expectCommands runs a command in the container, which dockershim does over a connection that is no longer
// HTTP, and reads its log.
func expectCommands(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) {
	t.Helper()
	if out, err := kubelet.Run(t.Context(), pod, "main", "env"); !strings.Contains(string(out), "GREETING=hello\n") {
		t.Errorf("a command in the container printed %q, want GREETING=hello (%v)", out, err)
	}
	if log, err := kubelet.Logs(t.Context(), pod, "main"); !strings.HasPrefix(string(log), "tick\n") {
		t.Errorf("the container's log is %q, want ticks (%v)", log, err)
	}
}

func staticPod(name string) *core.Pod {
	return &core.Pod{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{
			"set.wasmproxy.io/main.field.cpu_quota": "15000",
			"overlay":                               `{"Shares": 300}`,
		}},
		Spec: core.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []core.Container{{
				Name: "main", Image: image.Busybox,
				Command: []string{"sh", "-c", "trap 'exit 0' TERM; while true; do echo tick; sleep 1 & wait $!; done"},
				Env:     []core.EnvVar{{Name: "GREETING", Value: "hello"}},
				Resources: core.ResourceRequirements{Limits: core.ResourceList{
					core.ResourceCPU: resource.MustParse("250m"), core.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}},
		},
	}
}
