package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestHangup: when its terminal is closed, the proxy ends after the call in flight, as with SIGTERM.
func TestHangup(t *testing.T) {
	u := newUpgraded(t)
	u.runtime.stops = make(chan chan struct{})
	handled := make(chan os.Signal, 1) // so that the program has SIGHUP as by default, also in a test that nohup has started
	signal.Notify(handled, unix.SIGHUP)
	defer signal.Stop(handled)
	u.put(build(t, u.dir, "v1"))
	u.start()
	u.status(0)
	pod, err := u.kubelet.RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: podConfig("web")}, grpc.WaitForReady(true))
	u.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), upgradePatience)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		_, err := u.kubelet.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: pod.GetPodSandboxId()})
		stopped <- err
	}()
	var end chan struct{}
	select {
	case end = <-u.runtime.stops:
	case err := <-stopped:
		t.Fatalf("the call ends before it is with the runtime: %v", err)
	}
	u.must(unix.Kill(u.pids[0], unix.SIGHUP))
	for late := time.Now().Add(upgradePatience); ; time.Sleep(5 * time.Millisecond) {
		log, err := os.ReadFile(u.dir + "/log")
		u.must(err)
		if strings.Contains(string(log), "stopping") {
			break
		}
		if time.Now().After(late) {
			t.Fatal("the proxy does not stop")
		}
	}
	close(end)
	if err := <-stopped; err != nil {
		t.Errorf("the call in flight fails: %v", err)
	}
	if code := u.awaitEnd(u.pids[0]); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// TestNohup: a proxy that was started with SIGHUP ignored ignores it.
func TestNohup(t *testing.T) {
	u := newUpgraded(t)
	program := build(t, u.dir, "v1")
	u.must(os.WriteFile(u.program, []byte("#!/bin/sh\ntrap '' HUP\nexec "+program+" \"$@\"\n"), 0o755))
	u.start()
	u.status(0)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.pids[0]))
	u.must(err)
	ignored := regexp.MustCompile(`(?m)^SigIgn:\s*([0-9a-f]+)$`).FindSubmatch(text)
	if ignored == nil {
		t.Fatalf("the kernel does not tell:\n%s", text)
	}
	set, err := strconv.ParseUint(string(ignored[1]), 16, 64)
	u.must(err)
	if set&(1<<(unix.SIGHUP-1)) == 0 {
		t.Errorf("the ignored signals are %x", set)
	}
}

// TestLogWithoutReader: the proxy serves on when whoever reads its log has gone, and ends as always.
func TestLogWithoutReader(t *testing.T) {
	program, err := exec.LookPath("wasmproxy") // which testscript has put on PATH
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, "serve", "--listen", dir+"/listen.sock", "--backend", dir+"/backend.sock", "--plugin-dir", dir+"/plugins.d",
		"--hook-dir=", "--cache-dir=", "--state-dir=", "--data-dir=", "--cgroup-root=", "--admin-socket=", "--status-socket=", "--bypass-file=")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, read := log.Read(make([]byte, 1))
	if err := errors.Join(read, log.Close(), cmd.Process.Signal(unix.SIGTERM), cmd.Wait()); err != nil { // it logs that it stops
		t.Errorf("the proxy ends with %v", err)
	}
}
