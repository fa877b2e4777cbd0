package suite_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestSynchronize adds plugins to a running node, on which pods are made and removed
// all the while. What each plugin wrote down must begin, for every pod, with
// Synchronize if the pod was there before the plugin, else with the pod's making,
// and there must be no second of either, but for a container that was being made when the plugin came:
// it is told of the pod again.
func TestSynchronize(t *testing.T) {
	t.Run("kubelet", func(t *testing.T) {
		node.StartRuntime(t)
		proxy := node.StartProxy(t)
		kubelet := node.StartKubelet(t, node.RuntimeKind().ProxyEndpoint, nil)
		var existing []string
		for i := range 3 {
			existing = append(existing, runStaticPod(t, kubelet, fmt.Sprintf("existing-%d", i)))
		}
		testSynchronize(t, proxy, existing, func(ctx context.Context, name string) {
			pod := staticPod(name, ticking("main", requests("10m", "16Mi")))
			kubelet.Apply(t, pod)
			time.Sleep(node.Slowly(2 * time.Second)) // a slow node has no more pods at a time than a fast one
			kubelet.Remove(t, pod)
		})
	})
	// kubelet would stop these pods, which are not its own.
	t.Run("another caller", func(t *testing.T) {
		node.StartRuntime(t)
		proxy := node.StartProxy(t)
		client := node.DialCRI(t, node.RuntimeKind().ProxyEndpoint)
		client.PullBusybox(t)
		var existing []string
		for i := range 5 {
			w := node.Workload{Name: fmt.Sprintf("existing-%d", i)}
			if _, err := client.Run(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			existing = append(existing, w.Name)
		}
		testSynchronize(t, proxy, existing, func(ctx context.Context, name string) {
			running, err := client.Run(ctx, node.Workload{Name: name})
			if err == nil {
				err = client.Remove(ctx, running)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	})
}

// testSynchronize adds plugins while pods pass, each of which pass makes and removes.
// The existing pods, named by uid, stay.
func testSynchronize(t *testing.T, proxy *node.Proxy, existing []string, pass func(ctx context.Context, name string)) {
	h := startHammer(t, pass)
	var plugins []string
	for i := range 8 {
		id := fmt.Sprintf("%d-roster", 50+i)
		plugins = append(plugins, id)
		time.Sleep(time.Second)
		proxy.Add(t, node.Roster(id))
		for _, uid := range existing {
			if hooks := readRoster(t, proxy, id).hooks[uid+"/0"]; !slices.Equal(hooks, []string{"Synchronize"}) {
				t.Errorf("%s takes part and has heard of %s as %v", id, uid, hooks)
			}
		}
	}
	h.await(t, 2*hammers) // at most half of them began before the last plugin
	passed := h.stop()
	execInPods(t, existing)
	expectNoFailures(t, proxy)
	for _, id := range plugins {
		r := readRoster(t, proxy, id)
		checkRoster(t, r, existing, passed)
		checkExisting(t, r, existing)
	}

	proxy.Start(t) // again, and the plugins know nothing
	execInPods(t, existing)
	expectNoFailures(t, proxy)
	for _, id := range plugins {
		checkExisting(t, readRoster(t, proxy, id), existing)
	}
}

// hammers is how many pods are made or removed at a time.
const hammers = 4

// hammer passes pods until it is stopped.
type hammer struct {
	callers sync.WaitGroup
	stopped atomic.Bool
	passed  atomic.Int64
}

func startHammer(t *testing.T, pass func(ctx context.Context, name string)) *hammer {
	h := &hammer{}
	t.Cleanup(func() { h.stop() })
	for caller := range hammers {
		h.callers.Go(func() {
			time.Sleep(time.Duration(caller) * 200 * time.Millisecond) // so that a plugin comes at another moment of each
			for i := 0; !h.stopped.Load(); i++ {
				pass(t.Context(), fmt.Sprintf("passing-%d-%d", caller, i))
				h.passed.Add(1)
			}
		})
	}
	return h
}

// await waits until n more pods have passed.
func (h *hammer) await(t *testing.T, n int64) {
	t.Helper()
	want := h.passed.Load() + n
	node.Eventually(t, time.Minute, "pods have passed", func() error {
		if passed := h.passed.Load(); passed < want {
			return fmt.Errorf("%d of %d", passed, want)
		}
		return nil
	})
}

// stop ends it and returns how many pods have passed.
func (h *hammer) stop() int64 {
	h.stopped.Store(true)
	h.callers.Wait()
	return h.passed.Load()
}

// runStaticPod returns the uid that kubelet gives a static pod in CRI, which is not the one it shows.
func runStaticPod(t *testing.T, kubelet *node.Kubelet, name string) (uid string) {
	t.Helper()
	pod := staticPod(name, ticking("main", requests("10m", "16Mi")))
	kubelet.Apply(t, pod)
	uid = kubelet.AwaitReady(t, pod).Annotations["kubernetes.io/config.hash"]
	if uid == "" {
		t.Fatalf("kubelet does not say what the uid of %s is", name)
	}
	return uid
}

// execInPods has an event come of each pod's container.
func execInPods(t *testing.T, uids []string) {
	t.Helper()
	client := node.DialCRI(t, node.RuntimeKind().ProxyEndpoint)
	for _, uid := range uids {
		execInPod(t, client, uid)
	}
}

func execInPod(t *testing.T, client node.CRI, uid string) {
	t.Helper()
	containers, err := client.ListContainers(t.Context(), &cri.ListContainersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	sandboxes, err := client.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, sandbox := range sandboxes.Items {
		for _, c := range containers.Containers {
			if sandbox.Metadata.Uid != uid || c.PodSandboxId != sandbox.Id {
				continue
			}
			if _, err := client.ExecSync(t.Context(), &cri.ExecSyncRequest{ContainerId: c.Id, Cmd: []string{"true"}}); err != nil {
				t.Errorf("running a command in %s: %v", uid, err)
			}
			return
		}
	}
	t.Errorf("pod %s has no container", uid)
}

// roster is what a plugin wrote down: the hooks of each pod in order, by uid and
// attempt, with what Synchronize told of its containers.
type roster struct {
	plugin     string
	hooks      map[string][]string
	containers map[string]string
}

func readRoster(t *testing.T, proxy *node.Proxy, plugin string) roster {
	t.Helper()
	r := roster{plugin, map[string][]string{}, map[string]string{}}
	for _, line := range records(t, proxy, "plugin log", plugin) {
		pod, containers, _ := strings.Cut(line.Text, " ")
		r.hooks[pod] = append(r.hooks[pod], line.Hook)
		if line.Hook == "Synchronize" {
			r.containers[pod] = containers
		}
	}
	return r
}

func checkRoster(t *testing.T, r roster, existing []string, passed int64) {
	t.Helper()
	found, fresh := 0, 0
	for pod, hooks := range r.hooks {
		begins := func(hook string) bool { return hook == "Synchronize" || hook == "PreRunPodSandbox" }
		again := slices.Index(hooks[1:], "Synchronize") // of a pod, or its first container, that the runtime had not described
		if hooks[0] == "Synchronize" && again >= 0 && again < 2 {
			hooks = slices.Delete(slices.Clone(hooks), again+1, again+2)
		}
		if !begins(hooks[0]) || slices.ContainsFunc(hooks[1:], begins) {
			t.Errorf("%s heard of %s as %v", r.plugin, pod, hooks)
		}
		if hooks[0] == "Synchronize" {
			found++
		} else {
			fresh++
		}
	}
	if fresh == 0 || found <= len(existing) {
		t.Errorf("%s was there before %d pods and after %d, of which %d stayed: this test proves nothing", r.plugin, fresh, found, len(existing))
	}
	t.Logf("%s was told of %d pods and saw %d begin; %d passed", r.plugin, found, fresh, passed)
}

// checkExisting demands that the plugin was told of the pods that stayed, then saw their one event.
func checkExisting(t *testing.T, r roster, existing []string) {
	t.Helper()
	for _, uid := range existing {
		pod := uid + "/0"
		want := []string{"Synchronize", "PreExecSync", "PostExecSync"}
		if !slices.Equal(r.hooks[pod], want) || r.containers[pod] != "main:running" {
			t.Errorf("%s heard of %s as %v with the containers %q, want %v with main:running", r.plugin, pod, r.hooks[pod], r.containers[pod], want)
		}
	}
}
