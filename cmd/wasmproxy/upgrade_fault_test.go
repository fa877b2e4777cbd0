package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/handover"
)

// awaitLog waits until the log has the text so many times.
func (u *upgraded) awaitLog(text string, times int) {
	u.t.Helper()
	for end := time.Now().Add(upgradePatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if log, _ := os.ReadFile(u.dir + "/log"); strings.Count(string(log), text) >= times {
			return
		}
	}
	u.t.Fatalf("the log does not say %q %d times", text, times)
}

// TestReloadIsGivenUp: a bypass, and SIGTERM, end a handover in which the other process has the state
// but does not serve. The bypass counts at once, and the process ends at once.
func TestReloadIsGivenUp(t *testing.T) {
	u := newUpgraded(t)
	good := build(t, u.dir, "v1")
	u.startWithPlugin(good)
	u.must(os.WriteFile(u.dir+"/script", []byte("#!/bin/sh\nexec successor-hangs\n"), 0o755))
	u.put(u.dir + "/script")
	reload := func(times int) <-chan string {
		said := make(chan string, 1)
		go func() {
			out, err := exec.Command(good, "reload", "--config", "", "--admin-socket", u.admin.Socket).CombinedOutput()
			if err == nil {
				out = append(out, " without an error"...)
			}
			said <- string(out)
		}()
		u.awaitLog("the successor has the state", times)
		return said
	}
	said := reload(1)
	u.must(os.WriteFile(u.dir+"/bypass", nil, 0o644))
	if got := <-said; !strings.Contains(got, "a bypass of the plugins began meanwhile") {
		t.Errorf("with a bypass the reload says %q", got)
	}
	u.must(os.Remove(u.dir + "/bypass"))
	u.status(1)
	said = reload(2)
	u.must(unix.Kill(u.pids[0], unix.SIGTERM))
	if code := u.awaitEnd(u.pids[0]); code != 0 {
		t.Errorf("the process ended with status %d", code)
	}
	if got := <-said; strings.Contains(got, "not serving within") || strings.Contains(got, "without") {
		t.Errorf("with SIGTERM the reload says %q", got)
	}
	u.awaitLog("this process is about to end", 1)
}

// TestTwoReloadsDuringACall: a call that began in the first of three processes gets its post hook in
// the last one, and then the first two end.
func TestTwoReloadsDuringACall(t *testing.T) {
	u := newUpgraded(t)
	u.runtime.stops = make(chan chan struct{})
	witness, err := os.ReadFile("../../testdata/wat/witness.wasm")
	u.must(err)
	u.must(os.WriteFile(u.dir+"/plugins.d/10-witness.json", []byte(`{"config": "a"}`), 0o644))
	u.must(os.WriteFile(u.dir+"/plugins.d/10-witness.wasm", witness, 0o644))
	u.put(build(t, u.dir, "v1"))
	u.start()
	u.status(1)
	pod, err := u.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig("web")})
	u.must(err)
	stopped := make(chan error, 1)
	go func() {
		_, err := u.kubelet.StopPodSandbox(t.Context(), &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetPodSandboxId()})
		stopped <- err
	}()
	end := <-u.runtime.stops
	for i := range 2 {
		if out, err := u.reload(); err != nil {
			t.Fatalf("reload %d: %v: %s", i, err, out)
		}
		u.status(1)
	}
	close(end)
	u.must(<-stopped)
	u.awaitLog("hook=PostStopPodSandbox", 1)
	for _, pid := range []int{u.pids[0], u.pids[1]} {
		if code := u.awaitEnd(pid); code != 0 {
			t.Errorf("process %d ended with status %d", pid, code)
		}
	}
}

// serveAndEnd is a program that takes the place of the proxy, and ends before it is told to begin.
func serveAndEnd() {
	channel, err := unix.Dup(3) // with the predecessor
	if err == nil {
		var from *handover.Predecessor
		if from, err = handover.FromEnvironment(); err == nil {
			err = from.Prepared()
		}
		if err == nil {
			_ = unix.Shutdown(channel, unix.SHUT_RD) // as if it had ended by the time that it is told
			err = from.Serving()
		}
	}
	fmt.Fprintln(os.Stderr, "the successor was about to serve:", err)
	os.Exit(1)
}

// TestSuccessorEndsAtOnce: a reload whose new process ends right after it took over fails, and the log
// does not say that the old one goes on, or has handed over.
func TestSuccessorEndsAtOnce(t *testing.T) {
	u := newUpgraded(t)
	good := build(t, u.dir, "v1")
	u.put(good)
	u.start()
	u.status(0)
	u.must(os.WriteFile(u.dir+"/script", []byte("#!/bin/sh\nexec successor-serves\n"), 0o755))
	u.put(u.dir + "/script")
	out, err := exec.Command(good, "reload", "--config", "", "--admin-socket", u.admin.Socket).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "restart the service") {
		t.Errorf("the reload says %q, %v", out, err)
	}
	u.awaitEnd(u.pids[0])
	log, err := os.ReadFile(u.dir + "/log")
	u.must(err)
	if text := string(log); strings.Contains(text, "this process goes on") || strings.Contains(text, "INF handed over") || !strings.Contains(text, "ERR handed over to a process that has probably ended") {
		t.Error("the log says something else")
	}
}

// TestReloadOfALargePlugin: a plugin that needs more than half of guest-memory does not keep the node
// from a reload. One that does not become active is named with the reason.
func TestReloadOfALargePlugin(t *testing.T) {
	u := newUpgraded(t)
	t.Setenv("WASMPROXY_GUEST_MEMORY", "80Mi")
	good := build(t, u.dir, "v1")
	hungry, err := os.ReadFile("../../testdata/wat/memory-hungry.wasm") // 62.5 MiB
	u.must(err)
	u.must(os.WriteFile(u.dir+"/plugins.d/10-hungry.json", []byte(`{"limits": {"memory": "64Mi"}}`), 0o644))
	u.must(os.WriteFile(u.dir+"/plugins.d/10-hungry.wasm", hungry, 0o644))
	u.put(good)
	u.start()
	u.status(1)
	if out, err := u.reload(); err != nil {
		t.Fatalf("the reload: %v: %s", err, out)
	}
	u.status(1)
	mute, err := net.Listen("unix", u.dir+"/mute.sock")
	u.must(err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error { <-s.Context().Done(); return nil }))
	go server.Serve(mute) // ends with the server
	t.Cleanup(server.Stop)
	u.must(os.WriteFile(u.dir+"/script", []byte(`#!/bin/sh`+"\n"+`exec "`+good+`" "$@" --backend "`+u.dir+`/mute.sock"`+"\n"), 0o755))
	u.put(u.dir + "/script")
	out, err := exec.Command(good, "reload", "--config", "", "--admin-socket", u.admin.Socket).CombinedOutput()
	if want := "10-hungry: the container runtime has not told of its pods"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("the reload says %q, want %q", out, want)
	}
}
