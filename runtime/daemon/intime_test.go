package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestHooksEndInTime gives guests that do their worst all the fuel and host calls there are,
// so that their time is what ends them: 500 ms, and by the wall clock no later than a fifth
// after that.
func TestHooksEndInTime(t *testing.T) {
	const limit = 500 * time.Millisecond
	n := serving(t, map[string]string{"20-good.wasm": "noop"})
	for _, tt := range []struct {
		guest       string
		annotations int
		says        string
	}{
		{"pointer-chase", 0, "time limit of 500ms"},
		{"square-roots", 0, "time limit of 500ms"},
		{"largest-arguments", 0, "called the host more than 100000 times|time limit of 500ms"},
		{"list-of-empties", 0, "called the host more than 100000 times|time limit of 500ms"},
		{"dump-flood", 30_000, "time limit of 500ms"},
		{"dump-flood", 100_000, "time limit of 500ms"},
		{"dump-flood", many(), "called the host more than 100000 times|time limit of 500ms"}, // each answered TOO_LARGE
	} {
		t.Run(fmt.Sprint(tt.guest, tt.annotations), func(t *testing.T) {
			req := annotated(tt.annotations)
			k := kit{node: n, json: `{"timeout":"500ms","failure-policy":"Fail","grant":["args"],"limits":{"fuel":` + strconv.Itoa(plugin.MaxFuel) + `,"host-calls":100000}}`}
			k.load(t, "noop")
			without := n.creates(t, req, "")
			k.load(t, tt.guest)
			var late []time.Duration
			for range attempts {
				took := n.creates(t, req, tt.says) - without
				if took <= limit+limit/5 || !wallClock() {
					t.Logf("it took %v, and %v without the plugin", took, without)
					return
				}
				late = append(late, took)
			}
			t.Errorf("hooks with a limit of %v took %v", limit, late)
		})
	}
}

// many is more annotations than the host goes through: where nothing else runs, as many as
// the fake runtime takes in a message of 4 MiB.
func many() int {
	if wallClock() {
		return 350_000
	}
	return abi.MaxEntries + 1
}

// annotated is a request with so many annotations.
func annotated(annotations int) *runtimeapi.CreateContainerRequest {
	all := make(map[string]string, annotations)
	for i := range annotations {
		all[strconv.FormatInt(int64(i), 36)] = ""
	}
	return &runtimeapi.CreateContainerRequest{
		PodSandboxId:  "web",
		Config:        &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"}, Annotations: all},
		SandboxConfig: podNamed("web"),
	}
}

// creates makes a container and returns how long that took. says is why it is refused, if it
// is to be; words are alternatives.
func (n *node) creates(t *testing.T, req *runtimeapi.CreateContainerRequest, says string) time.Duration {
	t.Helper()
	start := time.Now()
	_, err := n.kubelet.CreateContainer(t.Context(), req)
	took := time.Since(start)
	if says == "" && err != nil || says != "" && (status.Code(err) != codes.Unavailable || !containsOne(err.Error(), says)) {
		t.Errorf("after %v: %.300v, want %q", took, err, says)
	}
	return took
}

// TestSlowPluginsDelayNoOthers lets two plugins that take most of their fuel and succeed serve
// ten callers at a time. A plugin of another namespace, whose pods they never hear of, serves
// as before.
func TestSlowPluginsDelayNoOthers(t *testing.T) {
	n := newNode(t)
	for _, name := range []string{"10-slow", "20-slow"} {
		n.put(name+".wasm", "slow-and-good")
		n.put(name+".json", `{"match":{"namespaces":["test"]}}`)
	}
	n.put("30-quick.wasm", "noop")
	n.put("30-quick.json", `{"failure-policy":"Fail","match":{"namespaces":["other"]}}`)
	n.start(daemon.Run)
	n.awaitActive("10-slow", "20-slow", "30-quick")
	var worst []time.Duration
	for range attempts {
		before, meanwhile := n.otherNamespace(t), time.Duration(0)
		slow := n.callers(t, 10, func() { meanwhile = n.otherNamespace(t) })
		t.Logf("p99 of the other namespace: %v, %v while %d pods met slow plugins", before, meanwhile, slow)
		if slow == 0 {
			t.Fatal("no pod met the slow plugins")
		}
		if meanwhile < before+maxSlowdown || !wallClock() {
			return
		}
		worst = append(worst, meanwhile)
	}
	t.Errorf("p99 of another namespace was %v", worst)
}

// callers runs pods from so many goroutines until f has ended, and returns how many that were.
func (n *node) callers(t *testing.T, callers int, f func()) (pods int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if _, err := n.runPod(ctx, fmt.Sprintf("slow-%d-%d", caller, i)); err == nil {
					mu.Lock()
					pods++
					mu.Unlock()
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond) // for the plugins to have shown that they are slow
	f()
	cancel()
	calling.Wait()
	return pods
}

// otherNamespace runs pods of another namespace one after the other, and returns the 99th
// percentile of what they took.
func (n *node) otherNamespace(t *testing.T) time.Duration {
	t.Helper()
	took := make([]time.Duration, 300)
	for i := range took {
		pod := podNamed(fmt.Sprintf("quick-%d", i))
		pod.Metadata.Namespace = "other"
		start := time.Now()
		if _, err := n.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: pod}); err != nil {
			t.Error(err)
		}
		took[i] = time.Since(start)
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
