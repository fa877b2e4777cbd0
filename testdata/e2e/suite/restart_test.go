package suite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

const witnessAnnotation = "witness.wasmproxy.io/hash"

// TestRestart has kubelet itself update a container: with the static CPU
// manager, a guaranteed pod takes a CPU from all others and gives it back. What
// the witness plugin sees of the updated container must be the same after
// wasmproxy was killed, and after the runtime was. Where the runtime does not tell
// what the container was given, the witness fails then, and the updates go on without it.
func TestRestart(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Fatal("this test needs two CPUs, one of which a pod takes for itself")
	}
	backend := node.StartRuntime(t)
	proxy := node.StartProxy(t, node.Witness)
	kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, staticCPUManager)
	shared := staticPod("shared", ticking("main", requests("100m", "32Mi")))
	kubelet.Apply(t, shared)
	kubelet.AwaitReady(t, shared)
	stop := watchReady(t, kubelet, shared)
	created := hashOfCreation(t, shared)
	node.Eventually(t, time.Minute, "kubelet's CPU manager updates the container for the first time", func() error {
		if witnessed(t, proxy, shared).answered == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	before := pinAndUnpin(t, kubelet, proxy, shared, "pinned-first")
	t.Logf("the witness saw %s, and in updates %v", created, before)
	expectTwoHashes(t, before)
	for _, hash := range before {
		if env(hash) != env(created) {
			t.Errorf("the environment is %s when the container is updated, %s when it is created", env(hash), env(created))
		}
	}

	proxy.Kill()
	proxy.Start(t)
	expectUpdates(t, "after a restart of wasmproxy", pinAndUnpin(t, kubelet, proxy, shared, "pinned-second"), before)

	backend.Restart(t)
	node.AwaitCRI(t, node.RuntimeKind().ProxyEndpoint)
	expectUpdates(t, "after a restart of the runtime", pinAndUnpin(t, kubelet, proxy, shared, "pinned-third"), before)

	if now := hashOfCreation(t, shared); now != created {
		t.Errorf("the container's annotation is %q, was %q", now, created)
	}
	stop()
	expectServedUpdates(t, proxy)
}

// expectServedUpdates stops wasmproxy and demands that no update failed, and no hook but
// those of the witness that the runtime does not tell enough.
func expectServedUpdates(t *testing.T, proxy *node.Proxy) {
	t.Helper()
	served := proxy.Stop(t)
	calls := served.Calls["UpdateContainerResources"]
	if succeeded := served.Hooks["PostUpdateContainerResources"]; succeeded != calls || calls < 4 {
		t.Errorf("%d of %d updates succeeded, want all of at least 4", succeeded, calls)
	}
	failed := map[string]int{}
	if node.RuntimeKind().NoResources {
		// Those of the shared container; others were created since. kubelet makes the last one before the kill again if the
		// answer was lost with the process.
		failed["PreUpdateContainerResources"] = min(max(4, served.HookFailures["PreUpdateContainerResources"]), 5)
	}
	if !maps.Equal(served.HookFailures, failed) {
		t.Errorf("hooks failed: %v, want %v", served.HookFailures, failed)
	}
}

func staticCPUManager(c *kubeletconfig.KubeletConfiguration) {
	c.CPUManagerPolicy = "static"
	c.CPUManagerReconcilePeriod = meta.Duration{Duration: time.Second}
	c.KubeReserved = map[string]string{"cpu": "500m"} // the policy wants some; it sets aside a whole CPU for it
}

// pinAndUnpin runs a pod that takes a CPU for itself, removes it, and returns what
// the witness saw of the shared pod's container in the two updates that follow from
// that, once both have succeeded and the kernel holds what they asked for. A pod of the same name again would be the same pod to
// kubelet, which may not have done with it.
func pinAndUnpin(t *testing.T, kubelet *node.Kubelet, proxy *node.Proxy, shared *core.Pod, name string) []string {
	t.Helper()
	group := cgroups(t, shared)["main"]
	all := cpus(t, group)
	before := witnessed(t, proxy, shared)
	pinned := staticPod(name, ticking("main", limits("1", "32Mi")))
	kubelet.Apply(t, pinned)
	kubelet.AwaitReady(t, pinned)
	awaitCPUs(t, group, "fewer CPUs", func(now string) bool { return now != all })
	kubelet.Remove(t, pinned)
	kubelet.AwaitGone(t, pinned)
	awaitCPUs(t, group, "all CPUs again", func(now string) bool { return now == all })
	var after witnessLog
	node.Eventually(t, time.Minute, "kubelet has its answers", func() error {
		after = witnessed(t, proxy, shared)
		if answered := after.answered - before.answered; answered < 2 {
			return fmt.Errorf("%d of 2", answered)
		}
		return nil
	})
	return after.hashes[len(before.hashes):]
}

func expectTwoHashes(t *testing.T, hashes []string) {
	t.Helper()
	if len(hashes) != 2 || hashes[0] == hashes[1] {
		t.Fatalf("the witness saw %v of the shared container, want two different hashes", hashes)
	}
}

func cpus(t *testing.T, group string) string {
	t.Helper()
	value, err := cgroupfs.Read(group, "cpuset/cpuset.cpus")
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func awaitCPUs(t *testing.T, group, what string, want func(string) bool) {
	t.Helper()
	node.Eventually(t, time.Minute, "the shared container has "+what, func() error {
		if now := cpus(t, group); !want(now) {
			return fmt.Errorf("it has %s", now)
		}
		return nil
	})
}

// witnessLog is what the witness noted of the updates of a pod's container since wasmproxy was started.
type witnessLog struct {
	hashes   []string
	answered int // how many of the updates have ended
}

func witnessed(t *testing.T, proxy *node.Proxy, pod *core.Pod) (w witnessLog) {
	t.Helper()
	proxy.Records(t, "plugin changed field", func(line []byte) error {
		var r struct{ Hook, Namespace, Pod, Field, Value string }
		err := json.Unmarshal(line, &r)
		if r.Hook == "PreUpdateContainerResources" && r.Namespace == "default" && r.Pod == node.PodName(pod) && strings.Contains(r.Field, witnessAnnotation) {
			w.hashes = append(w.hashes, r.Value)
		}
		return err
	})
	proxy.Records(t, "plugin log", func(line []byte) error {
		var r struct{ Text string }
		err := json.Unmarshal(line, &r)
		if r.Text == "updated "+node.PodName(pod)+"/main" {
			w.answered++
		}
		return err
	})
	return w
}

// hashOfCreation returns the annotation that the witness gave the container when it was created.
func hashOfCreation(t *testing.T, pod *core.Pod) string {
	t.Helper()
	status, err := node.DialCRI(t, node.RuntimeKind().Endpoint).ContainerStatus(t.Context(),
		&cri.ContainerStatusRequest{ContainerId: containerID(t, pod)})
	if err != nil {
		t.Fatal(err)
	}
	hash := status.Status.Annotations[witnessAnnotation]
	if hash == "" {
		t.Errorf("the container has no annotation %s", witnessAnnotation)
	}
	return hash
}

// resources returns the part of a witness's hash that stands for resources.
func resources(hash string) string {
	resources, _, _ := strings.Cut(hash, "-")
	return resources
}

// env returns the part of a witness's hash that stands for the environment.
func env(hash string) string {
	_, env, _ := strings.Cut(hash, "-")
	return env
}

// expectUpdates compares what the witness saw after a restart, but for the environment
// where the runtime does not tell the one that kubelet asked for. It saw nothing where
// the runtime does not tell resources either.
func expectUpdates(t *testing.T, when string, got, want []string) {
	t.Helper()
	if node.RuntimeKind().NoResources {
		want = nil
	}
	same := func(a, b string) bool { return a == b || node.RuntimeKind().NoEnv && resources(a) == resources(b) }
	if !slices.EqualFunc(got, want, same) {
		t.Errorf("%s the witness saw %v, before %v", when, got, want)
	}
}

// watchReady looks, until stop is called, whether kubelet is healthy and the pod ready and never restarted.
func watchReady(t *testing.T, kubelet *node.Kubelet, pod *core.Pod) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			if err := stillReady(ctx, kubelet, pod); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

func stillReady(ctx context.Context, kubelet *node.Kubelet, pod *core.Pod) error {
	if err := kubelet.Healthy(ctx); err != nil {
		return err
	}
	now, err := kubelet.Pod(ctx, pod)
	if err != nil {
		return err
	}
	for _, c := range now.Status.ContainerStatuses {
		if !c.Ready || c.RestartCount != 0 {
			return errors.New("the pod did not stay ready: " + c.String())
		}
	}
	return nil
}
