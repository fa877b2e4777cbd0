package daemon_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// bypassable is a node with a bypass file that does not exist, and an admin socket.
func bypassable(t *testing.T) *node {
	t.Helper()
	n := newNode(t)
	n.config.BypassFile, n.config.AdminSocket = filepath.Join(n.dir, "etc", "bypass"), filepath.Join(n.dir, "admin.sock")
	n.must(os.Mkdir(filepath.Join(n.dir, "etc"), 0o755))
	return n
}

func (n *node) admin() admin.Client { return admin.Client{Socket: n.config.AdminSocket} }

// bypass makes the bypass file, and waits until that counts.
func (n *node) bypass(reason string) {
	n.t.Helper()
	n.must(os.WriteFile(n.config.BypassFile, []byte(reason), 0o644))
	n.await("plugins are bypassed")
}

func (n *node) endBypass() {
	n.t.Helper()
	n.must(os.Remove(n.config.BypassFile))
	n.await("plugins are not bypassed any more")
}

// awaitUndone waits until no value of a plugin is left.
func (n *node) awaitUndone() {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		b, err := n.admin().Bypass(n.t.Context())
		n.must(err)
		if b.On && b.Undone {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("the bypass is %+v; the log:\n%s", b, n.log)
		}
	}
}

// refusesPod reports whether a pod cannot be started because of a plugin.
func (n *node) refusesPod(name string) bool {
	n.t.Helper()
	_, err := n.runPod(n.t.Context(), name)
	if err != nil && status.Code(err) != codes.Unavailable {
		n.t.Error(err)
	}
	return err != nil
}

// With the file, plugins with policy Fail refuse nothing, loaded or not, and the values of plugins
// are undone. Without it they are loaded as at a start.
func TestBypass(t *testing.T) {
	n := bypassable(t)
	idle := n.runIdle()
	n.end()
	n.lose("30-lost")
	n.start(daemon.Run)
	n.await("plugins active", "plugins=\"[10-qos 20-quota]\"", "refusing=[30-lost]")
	n.put("40-trap.json", `{"failure-policy": "Fail"}`)
	n.put("40-trap.wasm", "trap")
	n.await("plugins active", "40-trap")
	n.awaitSocket()
	if !n.refusesPod("one") {
		t.Fatal("the plugins refuse nothing")
	}
	updates := n.updates()
	n.bypass("change 4711\nmore\x1b[2J")
	if n.refusesPod("two") {
		t.Error("a pod is refused while plugins are bypassed")
	}
	n.awaitUndone()
	n.holds(idle, "0")
	if n.updates() != updates+1 {
		t.Errorf("there were %d updates, and then %d: the quota of 20-quota is not undone", updates, n.updates())
	}
	b, err := n.admin().Bypass(t.Context())
	if err != nil || !b.On || b.Reason != "change 4711 more [2J" || b.File != n.config.BypassFile || time.Since(b.Since) > time.Hour {
		t.Errorf("the bypass is %+v, %v", b, err)
	}
	if _, err := n.admin().Explain(t.Context(), "web"); err == nil || !strings.HasPrefix(err.Error(), "plugins are bypassed and none has left a value") {
		t.Error(err)
	}
	n.put("50-late.wasm", "noop") // files may change meanwhile
	n.remove("40-trap.wasm")
	n.endBypass()
	n.await("plugins active", "plugins=\"[10-qos 20-quota 50-late]\"", "refusing=[30-lost]")
	if !n.refusesPod("three") {
		t.Error("the plugin that cannot be loaded refuses nothing after the bypass")
	}
}

// Plugins get Synchronize after a bypass for all pods, also for those that were made in it.
func TestSynchronizeAfterBypass(t *testing.T) {
	n := bypassable(t)
	n.put("10-witness.json", witnessConfig("a"))
	n.put("10-witness.wasm", "witness")
	n.start(daemon.Run)
	n.awaitActive("10-witness")
	_, err := n.runPod(t.Context(), "before")
	n.must(err)
	n.bypass("")
	_, err = n.runPod(t.Context(), "during")
	n.must(err)
	n.endBypass()
	n.awaitActive("10-witness")
	log := n.log.String()
	_, after, _ := strings.Cut(log, "plugins are not bypassed any more")
	for _, pod := range []string{"before", "during"} {
		if got := witness(after)["a"][pod]; fmt.Sprint(got) != "[Synchronize]" {
			t.Errorf("after the bypass the plugin has heard %v of pod %s:\n%s", got, pod, log)
		}
	}
	if got := witness(log)["a"]["during"]; len(got) != 1 {
		t.Errorf("the plugin has heard of a pod that was made in the bypass: %v", got)
	}
}

// The bypass holds over a restart, before the first call; values that the proxy has set before
// are undone then.
func TestBypassHoldsOverARestart(t *testing.T) {
	n := bypassable(t)
	idle := n.runIdle()
	n.end()
	n.lose("30-lost")
	n.must(os.WriteFile(n.config.BypassFile, nil, 0o644))
	n.start(daemon.Run)
	if n.refusesPod("one") {
		t.Error("a pod is refused though plugins are bypassed from the start")
	}
	n.awaitSocket()
	n.awaitUndone()
	n.holds(idle, "0")
	if log := n.log.String(); strings.Count(log, `msg="plugin loading" plugin=10-qos`) != 1 {
		t.Error("plugins are loaded in a bypass")
	}
	n.endBypass()
	n.await("plugins active", "10-qos 20-quota", "refusing=[30-lost]")
}

// Hooks that run when the bypass begins end, and their calls go on as they came, whatever the policy;
// so do calls that wait for a post hook.
func TestBypassEndsHooksUnderWay(t *testing.T) {
	n := bypassable(t)
	n.start(daemon.Run)
	pod, err := n.runPod(t.Context(), "old")
	n.must(err)
	container, err := n.createContainer(t.Context(), pod, "app")
	n.must(err)
	n.put("10-loop.json", `{"failure-policy": "Fail", "timeout": "1m", `+endlessFuel+`}`)
	n.put("10-loop.wasm", "announced-loop")
	n.awaitActive("10-loop")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = n.kubelet.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: container})
	n.must(err)
	n.await("plugin log", "hook=PostStopContainer", "text=looping")
	ended := make(chan error, 2)
	go func() {
		_, err := n.runPod(ctx, "new")
		ended <- err
	}()
	go func() {
		_, err := n.kubelet.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuShares: 3}})
		ended <- err
	}()
	time.Sleep(time.Second) // they are in the proxy then; if not, the routes below tell
	n.bypass("")
	for range 2 {
		n.must(receive(n, ended))
	}
	n.await("call finished", "method=/runtime.v1.RuntimeService/RunPodSandbox", "code=OK", "route=hooked")
	if log := n.log.String(); strings.Contains(log, "call refused") || strings.Contains(log, "post hook failed") || strings.Contains(log, "earlier post hooks") {
		t.Errorf("the log has more than the bypass:\n%s", log)
	}
}

// Plugins are loaded again after a bypass though the runtime does not answer the update that brings kubelet's value back.
func TestBypassEndsWhileAnUpdateHangs(t *testing.T) {
	n := bypassable(t)
	n.config.DrainTimeout = time.Second
	asked, ended := make(chan struct{}, 1), make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	n.before(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if path.Base(info.FullMethod) == "UpdateContainerResources" {
			select {
			case asked <- struct{}{}:
			default:
			}
			<-ctx.Done()
			end()
		}
		return handler(ctx, req)
	})
	n.runIdle()
	n.bypass("")
	receive(n, asked)
	n.endBypass()
	n.await("plugins active", "[10-qos 20-quota]")
	select {
	case <-ended:
		t.Error("the plugins are active only after the update has ended")
	default:
	}
}

// An update of kubelet's that is at the runtime when the bypass begins has suspended cpu.idle, and
// restores it. It is undone after that.
func TestBypassDuringAnUpdate(t *testing.T) {
	n := bypassable(t)
	idle := n.runIdle()
	n.awaitSocket()
	container := filepath.Base(filepath.Dir(idle))
	n.runtime.RuntimeService.Lock() // it answers no call
	unlock := sync.OnceFunc(n.runtime.RuntimeService.Unlock)
	defer unlock()
	ended := make(chan error, 1)
	go func() {
		_, err := n.kubelet.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuShares: 3}})
		ended <- err
	}()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if text, _ := os.ReadFile(idle); strings.TrimSpace(string(text)) == "0" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the update does not suspend cpu.idle")
		}
	}
	n.bypass("")
	time.Sleep(100 * time.Millisecond) // of undoing
	unlock()
	n.must(receive(n, ended))
	n.awaitUndone()
	n.holds(idle, "0")
}

// A value of kubelet's that comes in the bypass is not overwritten by an undo that is tried again.
func TestKubeletsValueInABypass(t *testing.T) {
	n := bypassable(t)
	idle := n.runIdle()
	n.awaitSocket()
	container := filepath.Base(filepath.Dir(idle))
	n.runtime.RuntimeService.InjectError("UpdateContainerResources", status.Error(codes.Unknown, "no update now"))
	before := n.updates()
	n.bypass("")
	n.await("resources not set back to the values that they should have", "no update now")
	if b, err := n.admin().Bypass(t.Context()); err != nil || b.Undone {
		t.Errorf("the bypass is %+v, %v", b, err)
	}
	_, err := n.kubelet.UpdateContainerResources(t.Context(), &runtimeapi.UpdateContainerResourcesRequest{ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuQuota: 70000}})
	n.must(err)
	n.awaitUndone()
	if got := n.updates() - before; got != 2 {
		t.Errorf("there were %d updates, want one that failed and kubelet's", got)
	}
}

// When the admin socket says that plugins are bypassed, no call is refused any more. The command goes by that.
func TestBypassCountsWhenItIsTold(t *testing.T) {
	n := bypassable(t)
	n.put("40-trap.json", `{"failure-policy": "Fail"}`)
	n.put("40-trap.wasm", "trap")
	n.start(daemon.Run)
	n.awaitActive("40-trap")
	n.awaitSocket()
	if !n.refusesPod("before") {
		t.Fatal("the plugin refuses nothing")
	}
	for i := range 5 {
		n.must(os.WriteFile(n.config.BypassFile, nil, 0o644))
		n.awaitTold(true)
		if n.refusesPod(fmt.Sprintf("during-%d", i)) {
			t.Error("a pod is refused though the proxy has said that plugins are bypassed")
		}
		n.must(os.Remove(n.config.BypassFile))
		n.awaitTold(false)
		n.awaitActive("40-trap")
	}
	if !n.refusesPod("after") {
		t.Error("the plugin refuses nothing after the bypass")
	}
}

// awaitTold waits until the admin socket says that plugins are bypassed, or that they are not.
func (n *node) awaitTold(on bool) {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		b, err := n.admin().Bypass(n.t.Context())
		n.must(err)
		if b.On == on {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("the bypass is %+v; the log:\n%s", b, n.log)
		}
	}
}

// A file that cannot be looked for leaves the bypass as it is.
func TestBypassUnknown(t *testing.T) {
	n := bypassable(t)
	n.start(daemon.Run)
	dir := filepath.Dir(n.config.BypassFile)
	n.must(os.Remove(dir))
	n.must(os.WriteFile(dir, nil, 0o644))
	n.await("cannot look for the bypass file", "not a directory", "on=false")
}
