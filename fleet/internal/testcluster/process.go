package testcluster

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// FreePort is a port of this machine on which nobody listens now.
func FreePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Process starts a process, which ends with the test, or before that when kill is called. Its last lines are shown if the test fails.
func Process(t *testing.T, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	log := Log(t, filepath.Base(cmd.Path))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(kill)
	return kill
}

// Log is a file whose last lines are shown if the test fails.
func Log(t *testing.T, name string) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, text[max(0, len(text)-3000):])
		}
		log.Close()
	})
	return log
}

// Keep has a program run until kill is called or the test ends: one that ends by itself is started again, as kubelet does. kill gives no
// warning.
func Keep(t *testing.T, log *os.File, command func(context.Context) *exec.Cmd) (kill func()) {
	return During(t, func(ctx context.Context) {
		for ctx.Err() == nil {
			cmd := command(ctx)
			cmd.Stdout, cmd.Stderr = log, log
			err := cmd.Run()
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				t.Logf("%s has ended, and is started again: %v", filepath.Base(cmd.Path), err)
			}
		}
	})
}

// Run runs a program to its end, which must be a good one.
func Run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// Eventually tries until there is no error, for two minutes.
func Eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	Within(t, 2*time.Minute, what, try)
}

// Within tries until there is no error, for some time.
func Within(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not in %v: %v", what, limit, err)
		}
	}
}

// During has something run until stop is called, or the test ends.
func During(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}
