package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// witnessed is what a load of testdata/wat/witness was told of one pod, in order.
type witnessed map[string]map[string][]string // by load, by pod: hooks

var witnessLine = regexp.MustCompile(`msg="plugin log" plugin=10-witness hook=(\w+) namespace=test pod=(\S+).* text="\\"(\S+)\\""`)

func witness(log string) witnessed {
	all := witnessed{}
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m := witnessLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		hook, pod, load := m[1], m[2], m[3]
		if all[load] == nil {
			all[load] = map[string][]string{}
		}
		all[load][pod] = append(all[load][pod], hook)
	}
	return all
}

// judge wants a pod to be told of once, before its events, and not if the plugin saw it being made. It may be told of again
// with each of so many containers that the plugin did not see being made: a call that began before the plugin was loaded has.
func (w witnessed) judge(t *testing.T, containers int) {
	t.Helper()
	for load, pods := range w {
		for pod, hooks := range pods {
			told, saw := 0, 0
			for i, hook := range hooks {
				switch hook {
				case "PreCreateContainer":
					saw++
				case "Synchronize":
					if told++; told == 1 && i > 0 {
						t.Errorf("load %s: pod %s is told of after its first event: %v", load, pod, hooks)
					}
				}
			}
			if told > 1+containers-saw || told == 0 && hooks[0] != "PreRunPodSandbox" && hooks[0] != "PostRunPodSandbox" {
				t.Errorf("load %s: pod %s is told of %d times: %v", load, pod, told, hooks)
			}
		}
	}
}

func witnessConfig(load string) string { return fmt.Sprintf(`{"config": %q}`, load) }

// A plugin that is added to a running node is told of the pods that are there
// before it gets an event, and of none that it sees being made.
func TestSynchronizeOnLoad(t *testing.T) {
	n := serving(t, map[string]string{"20-quota.wasm": "quota"})
	n.await("plugins active", "20-quota")
	old, err := n.runPod(t.Context(), "old")
	n.must(err)
	n.put("10-witness.json", witnessConfig("a"))
	n.put("10-witness.wasm", "witness")
	n.awaitLoad("10-witness")
	if got := witness(n.log.String())["a"]["old"]; len(got) != 1 || got[0] != "Synchronize" {
		t.Errorf("before it is active the plugin has heard %v", got)
	}
	n.must(n.createIn(t.Context(), old, "old"))
	_, err = n.runPod(t.Context(), "young")
	n.must(err)
	n.end()
	w := witness(n.log.String())
	w.judge(t, 1)
	if got := w["a"]["old"]; strings.Join(got, " ") != "Synchronize PreCreateContainer" {
		t.Errorf("old: %v", got)
	}
	if got := w["a"]["young"]; strings.Join(got, " ") != "PreRunPodSandbox PostRunPodSandbox" {
		t.Errorf("young: %v", got)
	}
}

// A plugin that fails in Synchronize is not loaded, and the one before it stays.
func TestSynchronizeThatFails(t *testing.T) {
	n := serving(t, map[string]string{"10-witness.json": witnessConfig("a"), "10-witness.wasm": "witness"})
	n.await("plugins active", "10-witness")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.put("10-witness.json", witnessConfig("!b"))
	n.await("plugin not loaded", "the previous version stays active", "10-witness", "Synchronize")
	n.must(n.createIn(t.Context(), pod, "web"))
	n.put("10-witness.json", witnessConfig("c"))
	n.awaitLoad("10-witness")
	w := witness(n.log.String())
	if got := strings.Join(w["a"]["web"], " "); got != "PreRunPodSandbox PostRunPodSandbox PreCreateContainer" {
		t.Errorf("the plugin that was there heard %s", got)
	}
	if got := strings.ReplaceAll(strings.Join(w["!b"]["web"], " "), "Synchronize Synchronize", "Synchronize"); got != "Synchronize" { // it is told again
		t.Errorf("the plugin that fails heard %s", got)
	}
	if got := strings.Join(w["c"]["web"], " "); got != "Synchronize" {
		t.Errorf("its successor heard %s", got)
	}
}

// A plugin that must not be ignored whose first Synchronize fails was never good, and refuses nothing.
func TestSynchronizeThatFailsUnderFail(t *testing.T) {
	n := serving(t, map[string]string{"20-quota.wasm": "quota"})
	n.await("plugins active", "20-quota")
	_, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.put("10-witness.json", `{"config": "!a", "failure-policy": "Fail"}`)
	n.put("10-witness.wasm", "witness")
	n.await("plugin not loaded", "calls pass without it", "10-witness")
	n.awaitPods("next")
}

// While a plugin is loaded again and again and pods come and go, each load is
// told of each pod once, before its first event.
func TestSynchronizeHammered(t *testing.T) {
	n := serving(t, map[string]string{"20-quota.wasm": "quota", "10-witness.json": witnessConfig("0"), "10-witness.wasm": "witness"})
	n.await("plugins active", "10-witness")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	loaded := make(chan struct{})
	var pods sync.WaitGroup
	for worker := range 4 {
		pods.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				select {
				case <-loaded:
					return
				default:
					n.live(ctx, fmt.Sprintf("w%d-%d", worker, i), i%3 == 0)
				}
			}
		})
	}
	const loads = 12
	for i := 1; i <= loads; i++ {
		n.put("10-witness.json", witnessConfig(fmt.Sprint(i)))
		n.awaitLoad("10-witness")
	}
	close(loaded)
	pods.Wait()
	here, err := n.kubelet.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	n.must(err)
	for _, p := range here.GetItems() { // what a sweep has yet to tell is told before this
		n.must(n.createIn(ctx, p.GetId(), p.GetMetadata().GetName()))
	}
	n.end()
	w := witness(n.log.String())
	w.judge(t, 2)
	if last := w[fmt.Sprint(loads)]; len(w) != loads+1 || len(last) < len(here.GetItems()) || len(here.GetItems()) < loads {
		t.Errorf("%d loads were heard of, the last of %d pods of %d", len(w), len(last), len(here.GetItems()))
	}
}

// A plugin whose Synchronize of all pods would take long becomes active earlier, and gets
// Synchronize for the remaining pods then.
func TestSynchronizeTakesLong(t *testing.T) {
	n := newNode(t)
	n.put("20-quota.wasm", "quota")
	n.start(daemon.RunSyncingBriefly)
	n.await("plugins active", "20-quota")
	const pods = 5
	for i := range pods {
		_, err := n.runPod(t.Context(), podName(i))
		n.must(err)
	}
	n.put("10-witness.json", witnessConfig("a"))
	n.put("10-witness.wasm", "witness")
	n.await("plugin is active before it was synchronized with all pods", "plugin=10-witness", "left=4")
	for range pods - 1 {
		n.await("plugin log", "hook=Synchronize")
	}
	n.end()
	w := witness(n.log.String())
	w.judge(t, 0)
	if len(w["a"]) != pods {
		t.Errorf("the plugin was told of %d pods", len(w["a"]))
	}
}

// awaitLoad waits until a plugin whose file was written is active.
func (n *node) awaitLoad(id string) {
	n.t.Helper()
	n.await("plugin="+id, "name=") // it is loaded, or replaces another
	n.await("plugins active", id)
}

// createIn creates a container as kubelet does, with the config of its pod.
func (n *node) createIn(ctx context.Context, pod, name string) error {
	_, err := n.kubelet.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod, SandboxConfig: podNamed(name),
		Config: &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}},
	})
	return err
}

// A node's only plugin that comes and goes is told of every pod too, though calls
// pass unseen while it is not there.
func TestSynchronizeOfTheOnlyPluginHammered(t *testing.T) {
	n := serving(t, map[string]string{"10-witness.json": witnessConfig("0")})
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	done := make(chan struct{})
	var pods sync.WaitGroup
	for worker := range 4 {
		pods.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				select {
				case <-done:
					return
				default:
					if _, err := n.runPod(ctx, fmt.Sprintf("w%d-%d", worker, i)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	const loads = 4
	for i := range loads {
		n.put("10-witness.json", witnessConfig(fmt.Sprint(i)))
		n.put("10-witness.wasm", "witness")
		n.awaitLoad("10-witness")
		if i < loads-1 {
			n.remove("10-witness.wasm")
			n.await("no plugins active")
		}
	}
	close(done)
	pods.Wait()
	here, err := n.kubelet.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	n.must(err)
	last := func() map[string][]string { return witness(n.log.String())[fmt.Sprint(loads-1)] }
	for end := time.Now().Add(patience); len(last()) < len(here.GetItems()) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	witness(n.log.String()).judge(t, 0)
	if got, want := len(last()), len(here.GetItems()); got != want || want < loads {
		t.Errorf("the last load knows %d pods of %d", got, want)
	}
}

// live makes a pod and a container in it, and lets the pod go if it is to.
func (n *node) live(ctx context.Context, name string, leaves bool) {
	pod, err := n.runPod(ctx, name)
	if err == nil {
		err = n.createIn(ctx, pod, name)
	}
	if err == nil && leaves {
		if _, err = n.kubelet.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod}); err == nil {
			_, err = n.kubelet.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
		}
	}
	if err != nil {
		n.t.Errorf("pod %s: %v", name, err)
	}
}

// A pod that came while the plugin was not there, and of which it gets no event,
// is told of by the sweep that follows the store's.
func TestSynchronizeAfterTheStoreIsFilledAgain(t *testing.T) {
	n := serving(t, map[string]string{"10-witness.json": witnessConfig("a"), "10-witness.wasm": "witness"})
	n.await("connected to the container runtime")
	n.runtime.Stop()
	n.await("no connection to the container runtime")
	n.runtime = fake.NewFakeRemoteRuntime()
	_, err := n.runtime.RuntimeService.RunPodSandbox(t.Context(), podNamed("aside"), "")
	n.must(err)
	n.must(n.runtime.Start("unix://" + n.config.Backend))
	t.Cleanup(n.runtime.Stop)
	n.await("plugin log", "hook=Synchronize", "namespace=test pod=aside")
}
