package suite_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestKubeletWorksThroughProxy uses all that kubelet offers of a pod that uses
// all that kubelet offers: its own network, an init container, a volume, probes.
func TestKubeletWorksThroughProxy(t *testing.T) {
	node.StartRuntime(t)
	proxy := node.StartProxy(t, node.QoS, node.Noop)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
	pod := webPod()
	kubelet.Apply(t, pod)

	t.Run("readiness", func(t *testing.T) { testReadiness(t, kubelet, pod) })
	t.Run("doctor", func(t *testing.T) { testDoctor(t, proxy, kubelet) })
	t.Run("logs", func(t *testing.T) {
		expectOutput(t, "nginx -D FOREGROUND listening on 80\n")(kubelet.Logs(t.Context(), pod, "web"))
	})
	t.Run("exec", func(t *testing.T) {
		expectOutput(t, "from the init container\n")(kubelet.Run(t.Context(), pod, "web", "cat /data/note"))
	})
	t.Run("stats", func(t *testing.T) { testStats(t, kubelet, pod) })
	t.Run("crictl", func(t *testing.T) { testCrictl(t, pod) })
	t.Run("liveness", func(t *testing.T) { testLiveness(t, kubelet, pod) })
	t.Run("removal", func(t *testing.T) { testRemoval(t, proxy, kubelet, pod) })

	served := expectNoFailures(t, proxy)
	for _, hook := range []string{"PreRunPodSandbox", "PreCreateContainer", "PostStartContainer", "PostStopContainer", "PostStopPodSandbox"} {
		if served.Hooks[hook] == 0 {
			t.Errorf("hook %s: no plugin was called", hook)
		}
	}
}

// webPod serves pages after a while. It lives as long as /data/alive is there.
func webPod() *core.Pod {
	data := []core.VolumeMount{{Name: "data", MountPath: "/data"}}
	pod := staticPod("web", core.Container{
		Name: "web", Image: image.Nginx, VolumeMounts: data, Resources: limits("500m", "64Mi"),
		Command: []string{"sh", "-c", fmt.Sprintf("touch /data/alive; sleep %.0f; exec nginx", node.Slowly(2*time.Second).Seconds())},
		ReadinessProbe: &core.Probe{PeriodSeconds: 1, ProbeHandler: core.ProbeHandler{
			HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)},
		}},
		LivenessProbe: &core.Probe{PeriodSeconds: 1, FailureThreshold: 1, InitialDelaySeconds: 1, ProbeHandler: core.ProbeHandler{
			Exec: &core.ExecAction{Command: []string{"test", "-e", "/data/alive"}},
		}},
	})
	pod.Spec.HostNetwork = false
	pod.Spec.Volumes = []core.Volume{{Name: "data", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}}
	pod.Spec.InitContainers = []core.Container{{
		Name: "init", Image: image.Busybox, VolumeMounts: data,
		Command: []string{"sh", "-c", "echo from the init container > /data/note"},
	}}
	return pod
}

// testReadiness sees the container run before it is ready, and then be ready: its port is open after 2 s.
func testReadiness(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) {
	node.Eventually(t, time.Minute, "the container runs", func() error {
		status, err := webStatus(t, kubelet, pod)
		switch {
		case err != nil:
			return err
		case status.Ready:
			t.Fatal("the container was ready before its port was open")
		case status.State.Running == nil:
			return errors.New(status.State.String())
		}
		return nil
	})
	ready := kubelet.AwaitReady(t, pod)
	if !strings.HasPrefix(ready.Status.PodIP, "10.88.") {
		t.Errorf("the pod's address is %q, want one of its own network", ready.Status.PodIP)
	}
	if ready.Status.QOSClass != core.PodQOSBurstable || ready.Status.Phase != core.PodRunning {
		t.Errorf("the pod is %s and %s, want Burstable and Running", ready.Status.QOSClass, ready.Status.Phase)
	}
}

func webStatus(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) (core.ContainerStatus, error) {
	now, err := kubelet.Pod(t.Context(), pod)
	if err != nil {
		return core.ContainerStatus{}, err
	}
	if len(now.Status.ContainerStatuses) != 1 {
		return core.ContainerStatus{}, fmt.Errorf("it has %d container statuses", len(now.Status.ContainerStatuses))
	}
	return now.Status.ContainerStatuses[0], nil
}

func expectOutput(t *testing.T, want string) func([]byte, error) {
	t.Helper()
	return func(got []byte, err error) {
		t.Helper()
		if err != nil || string(got) != want {
			t.Errorf("got %q, want %q (%v)", got, want, err)
		}
	}
}

// testStats waits until kubelet's summary has what the container uses.
func testStats(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) {
	node.Eventually(t, time.Minute, "/stats/summary knows the pod", func() error {
		var summary stats.Summary
		if err := kubelet.GetJSON(t.Context(), "/stats/summary", &summary); err != nil {
			return err
		}
		for _, p := range summary.Pods {
			if p.PodRef.Name == node.PodName(pod) && len(p.Containers) == 1 {
				return checkUsage(p.Containers[0])
			}
		}
		return fmt.Errorf("it has %d pods", len(summary.Pods))
	})
}

func checkUsage(c stats.ContainerStats) error {
	switch {
	case c.CPU == nil || c.CPU.UsageCoreNanoSeconds == nil || *c.CPU.UsageCoreNanoSeconds == 0:
		return fmt.Errorf("container %s has used no CPU", c.Name)
	case c.Memory == nil || c.Memory.WorkingSetBytes == nil || *c.Memory.WorkingSetBytes == 0:
		return fmt.Errorf("container %s has no working set", c.Name)
	}
	return nil
}

// testCrictl uses an operator's tool: exec there is a stream, at a URL that the runtime gives through the proxy.
func testCrictl(t *testing.T, pod *core.Pod) {
	id := containerID(t, pod)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"ps", "--quiet", "--no-trunc", "--name", "web"}, id},
		{[]string{"exec", id, "cat", "/data/note"}, "from the init container"},
		{[]string{"logs", id}, "nginx -D FOREGROUND listening on 80"},
	} {
		if got := crictl(t, test.args...); got != test.want {
			t.Errorf("crictl %q: got %q, want %q", test.args, got, test.want)
		}
	}
}

func containerID(t *testing.T, pod *core.Pod) string {
	t.Helper()
	containers, err := node.DialCRI(t, node.RuntimeKind().Endpoint).ListContainers(t.Context(), &cri.ListContainersRequest{
		Filter: &cri.ContainerFilter{
			State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
			LabelSelector: map[string]string{"io.kubernetes.pod.name": node.PodName(pod)},
		},
	})
	if err != nil || len(containers.Containers) != 1 {
		t.Fatalf("pod %s has %d running containers, want 1: %v", pod.Name, len(containers.GetContainers()), err)
	}
	return containers.Containers[0].Id
}

// testLiveness makes the exec probe fail, upon which kubelet starts the container again.
func testLiveness(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) {
	if status, err := webStatus(t, kubelet, pod); err != nil || status.RestartCount != 0 {
		t.Fatalf("the container was restarted %d times before its probe failed: %v", status.RestartCount, err)
	}
	if out, err := kubelet.Run(t.Context(), pod, "web", "rm /data/alive"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	node.Eventually(t, time.Minute, "the container is restarted and ready", func() error {
		status, err := webStatus(t, kubelet, pod)
		if err == nil && (status.RestartCount == 0 || !status.Ready) {
			err = errors.New(status.String())
		}
		return err
	})
}

// testRemoval takes the manifest away. Nothing of the pod goes on running, and kubelet has heard of that.
func testRemoval(t *testing.T, proxy *node.Proxy, kubelet *node.Kubelet, pod *core.Pod) {
	kubelet.Remove(t, pod)
	kubelet.AwaitGone(t, pod)
	client := node.DialCRI(t, node.RuntimeKind().Endpoint)
	node.Eventually(t, time.Minute, "the pod's sandbox is stopped", func() error {
		pods, err := client.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{
			State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY},
		}})
		if err == nil && len(pods.Items) != 0 {
			err = fmt.Errorf("%d are running", len(pods.Items))
		}
		return err
	})
	node.Eventually(t, time.Minute, "kubelet's call to stop the sandbox has ended", func() error {
		err := errors.New("it has not")
		proxy.Records(t, "call finished", func(line []byte) error {
			var call struct{ Method, Code string }
			failed := json.Unmarshal(line, &call)
			if path.Base(call.Method) == "StopPodSandbox" && call.Code == "OK" {
				err = nil
			}
			return failed
		})
		return err
	})
}
