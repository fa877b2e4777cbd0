package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/plugins-wasm"
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
	u.must(os.WriteFile(u.dir+"/plugins.d/10-qos.wasm", plugins.QoS, 0o644))
	u.put(good)
	u.start()
	u.status(1)
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
