package daemon_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// A guest that misbehaves never fails a call under Ignore, fails it with a
// message that names the plugin under Fail, and is as good as new for the next.
func TestMisbehavingGuests(t *testing.T) {
	guests := []struct{ name, says string }{
		{"trap", "unreachable"},
		{"loop", "units of fuel"}, // which limit it meets first depends on the machine,
		{"exit-0", "exit"},
		{"exit-3", "3"},
		{"alloc", ""},
		{"bad-pointer", "outside its memory"},
		{"nonsense", ""},
		{"panic", ""},
		{"recursion", "stack overflow: used more than 1048576 bytes of stack"},
	}
	for _, g := range guests {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			limit := `"timeout":"10s"` // as much as a busy machine may need
			if g.name == "loop" {
				limit = `"timeout":"100ms"`
			}
			n := serving(t, map[string]string{"10-bad.wasm": g.name, "10-bad.json": "{" + limit + "}"})
			n.await("plugins active", "10-bad")
			for i := range 3 {
				if _, err := n.runPod(t.Context(), podName(i)); err != nil {
					t.Errorf("under Ignore, call %d: %v", i, err)
				}
			}
			n.await("plugin failed and was ignored", "10-bad", "PreRunPodSandbox")
			n.put("10-bad.json", "{"+limit+`,"failure-policy":"Fail"}`)
			n.await("plugins active", "10-bad")
			for i := range 3 {
				_, err := n.runPod(t.Context(), podName(10+i))
				if status.Code(err) != codes.Unavailable || !containsAll(err.Error(), []string{"10-bad", "PreRunPodSandbox", g.says}) {
					t.Errorf("under Fail, call %d: %v", i, err)
				}
			}
			n.put("10-bad.wasm", "noop")
			n.await("plugin replaced", "10-bad")
			n.await("plugins active", "10-bad")
			if _, err := n.runPod(t.Context(), "last"); err != nil {
				t.Errorf("after the guest was replaced: %v", err)
			}
		})
	}
}

// A plugin that must not be ignored refuses its hooks from the first call on, until its first load has ended. One
// that never was loaded refuses nothing.
func TestFailPluginThatNeverLoaded(t *testing.T) {
	n := caching(t)
	n.put("20-noop.wasm", "noop")
	n.broken("quota")
	loads := n.hold("quota")
	n.put("10-broken.wasm", "quota")
	n.put("10-broken.json", `{"failure-policy":"Fail"}`)
	n.start(daemon.Run)
	if _, err := n.createContainer(t.Context(), "pod", "first"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "10-broken") {
		t.Errorf("while it is being loaded: %v", err)
	}
	loads()
	n.await("plugin not loaded", "calls pass without it", "10-broken", "the test wants it so")
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, err := n.createContainer(t.Context(), "pod", "second")
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after its load has failed: %v", err)
		}
	}
	n.put("10-broken.wasm", "noop")
	n.await("plugin loaded", "10-broken")
	n.await("plugins active", "10-broken")
	if _, err := n.createContainer(t.Context(), "pod", "third"); err != nil {
		t.Errorf("after it was replaced: %v", err)
	}
}

// A runtime that takes calls and answers none keeps the store from being filled.
// What must not be ignored refuses its hooks meanwhile, whether it was there at
// the start or came later, and the proxy serves.
func TestFailPluginWhileTheRuntimeHangs(t *testing.T) {
	files := map[string]string{"10-fail.wasm": "noop", "10-fail.json": `{"failure-policy":"Fail"}`}
	for name, atStart := range map[string]bool{"there at the start": true, "came later": false} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			if !atStart {
				n.start(daemon.Run)
			}
			n.runtime.RuntimeService.Lock()
			defer n.runtime.RuntimeService.Unlock()
			for name, content := range files {
				n.put(name, content)
			}
			if atStart {
				n.start(daemon.Run)
			}
			var err error
			for end := time.Now().Add(patience); time.Now().Before(end); {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, err = n.runPod(ctx, "web")
				cancel()
				if status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "10-fail") {
					return
				}
			}
			t.Errorf("the plugin does not refuse: %v", err)
		})
	}
}

// A replacement that does not load leaves the plugin before it in place.
func TestBrokenReplacement(t *testing.T) {
	n := serving(t, map[string]string{"10-quota.wasm": "quota"})
	n.await("plugins active", "10-quota")
	n.put("10-quota.wasm", "wrong-signature")
	n.await("plugin not loaded", "the previous version stays active", "plugin=10-quota", "previous=1.0.0", "it imports wp1.get as")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	if got := n.runtime.RuntimeService.Containers[id].Annotations["example.com/quota"]; got != "200000" {
		t.Errorf("the runtime got annotation %q: the old plugin does not serve", got)
	}
}

// A plugin that is taken away is gone within a second, and with the last one
// every byte passes as it came.
func TestRemovedPlugin(t *testing.T) {
	n := serving(t, map[string]string{"10-quota.wasm": "quota"})
	n.await("plugins active", "10-quota")
	n.remove("10-quota.wasm")
	n.await("no plugins active")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	id, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	if got := n.runtime.RuntimeService.Containers[id].Annotations; len(got) != 0 {
		t.Errorf("the runtime got annotations %v", got)
	}
}

// What a guest logs says of which pod and container.
func TestGuestLogNamesThePod(t *testing.T) {
	n := serving(t, map[string]string{"10-log.wasm": "log-flood"})
	n.await("plugins active", "10-log")
	_, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.await("plugin log", "plugin=10-log", "hook=PreRunPodSandbox", "namespace=test pod=web")
}
