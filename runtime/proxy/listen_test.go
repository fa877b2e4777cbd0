package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

func listen(t testing.TB, path string) net.Listener {
	t.Helper()
	l, err := proxy.Listen(t.Context(), path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// answers reports whether somebody listens at path.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// only fails if dir holds anything but names.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}

func TestListen(t *testing.T) {
	dir := filepath.Join(filepath.Dir(socketPath(t)), "run", "wasmproxy")
	path := filepath.Join(dir, "cri.sock")
	for _, umask := range []int{0, 0o077} {
		old := syscall.Umask(umask)
		l := listen(t, path)
		syscall.Umask(old)
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := fs.ModeSocket | 0o660; info.Mode() != want {
			t.Errorf("with umask %03o the mode is %v, want %v", umask, info.Mode(), want)
		}
		if got := l.Addr().String(); got != path || !answers(path) {
			t.Errorf("listening on %s, not on %s", got, path)
		}
		only(t, dir, "cri.sock")
		l.Close()
		only(t, dir)
	}
}

func TestListenMakesDirectory(t *testing.T) {
	path := filepath.Join(filepath.Dir(socketPath(t)), "run", "wasmproxy", "cri.sock")
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	listen(t, path)
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("the directory is %v, %v", info.Mode(), err)
	}
}

func TestListenRefuses(t *testing.T) {
	free := socketPath(t)
	dir := filepath.Dir(free)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 108))
	live := filepath.Join(dir, "live.sock")
	listen(t, live)
	for path, want := range map[string]string{
		"cri.sock":                      "neither an absolute path",
		file:                            "not a socket",
		filepath.Join(file, "cri.sock"): "not a directory",
		filepath.Join(open, "cri.sock"): "anybody could replace the socket",
		long:                            fmt.Sprintf("has %d bytes", len(long)),
		live:                            "another process listens there",
	} {
		l, err := proxy.Listen(t.Context(), path, 0o660)
		if err == nil {
			l.Close()
			t.Errorf("listening on %s was allowed", path)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %q lacks %q or the path", err, want)
		}
	}
	if !answers(live) {
		t.Error("the live socket is gone")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// TestListenSticky allows a directory like /tmp.
func TestListenSticky(t *testing.T) {
	path := socketPath(t)
	if err := os.Chmod(filepath.Dir(path), 0o777|fs.ModeSticky); err != nil {
		t.Fatal(err)
	}
	listen(t, path)
}

// TestListenStale replaces the socket of a process that was killed, and the
// half-made one of a process that was killed while it began to listen.
func TestListenStale(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	if err := os.Link(path, path+".new"); err != nil {
		t.Fatal(err)
	}
	listen(t, path)
	if !answers(path) {
		t.Error("nobody listens")
	}
	only(t, filepath.Dir(path), "cri.sock")
}

func leaveStale(t *testing.T, path string) {
	t.Helper()
	process := start(t, "listener", path)
	if !process.ready() {
		t.Fatal("the listener did not start")
	}
	process.kill(t)
	if _, err := os.Lstat(path); err != nil || answers(path) {
		t.Fatalf("there is no stale socket: %v", err)
	}
}

// TestListenRace: of several processes that start at once one gets the path.
func TestListenRace(t *testing.T) {
	path := socketPath(t)
	leaveStale(t, path)
	processes := make([]process, 6)
	for i := range processes {
		processes[i] = start(t, "listener", path)
	}
	won := 0
	for _, p := range processes {
		if p.ready() {
			won++
		}
	}
	if won != 1 || !answers(path) {
		t.Errorf("%d processes of %d listen, somebody answers: %v", won, len(processes), answers(path))
	}
}

// TestListenHammer is the race within one process, many times, with listeners
// that close while others begin.
func TestListenHammer(t *testing.T) {
	path := socketPath(t)
	var all sync.WaitGroup
	var holders, wins atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 20 {
				l, err := proxy.Listen(t.Context(), path, 0o660)
				if err != nil {
					continue
				}
				wins.Add(1)
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d listeners hold the path", n)
				}
				if !answers(path) {
					t.Error("the winner does not answer")
				}
				holders.Add(-1)
				l.Close()
			}
		})
	}
	all.Wait()
	if wins.Load() == 0 {
		t.Error("nobody ever got the path")
	}
	only(t, filepath.Dir(path))
}

// TestListenForeign: a socket that somebody else has put in our place stays.
func TestListenForeign(t *testing.T) {
	path := socketPath(t)
	l := listen(t, "unix://"+path)
	other, err := net.Listen("unix", path+"2")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := os.Rename(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if !answers(path) {
		t.Error("the other's socket is gone")
	}
}

// TestAnotherProxyTakesThePath: a new proxy takes the path while the old one still finishes a
// call, and keeps it.
func TestAnotherProxyTakesThePath(t *testing.T) {
	backend := newSlow()
	path, stop := startDraining(t, backend, time.Minute)
	answer := make(chan error, 1)
	conn := connect(t, path)
	go func() {
		_, err := invoke(context.Background(), conn, version, nil)
		answer <- err
	}()
	wait(t, backend.begun, "the call did not arrive")
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	gone(t, path)

	second := socketPath(t)
	startBackend(t, second, func(_ string, stream grpc.ServerStream) error { return sendAll(stream, []byte("new")) })
	l := listen(t, path)
	serve(t, proxy.New(proxy.Options{Backend: dial(t, second)}), l)
	close(backend.release)
	if err := errors.Join(<-answer, <-stopped); err != nil {
		t.Error(err)
	}
	if got, err := invoke(withTimeout(t, time.Minute), connect(t, path), version, nil); err != nil || string(got) != "new" {
		t.Errorf("the new proxy answers %q, %v", got, err)
	}
}

func TestDialRefuses(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                       "neither an absolute path",
		"containerd.sock":        "neither an absolute path",
		"tcp://127.0.0.1:1":      "neither an absolute path",
		"unix://containerd.sock": "neither an absolute path",
		"unix:///run/" + strings.Repeat("x", 108): "has 113 bytes",
	} {
		conn, err := proxy.Dial(endpoint)
		if err == nil {
			conn.Close()
			t.Errorf("dialling %q was allowed", endpoint)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strings.TrimPrefix(endpoint, "unix://")) {
			t.Errorf("error %q lacks %q or the endpoint", err, want)
		}
	}
}

// TestAnswers: a server that accepts connections answers; a socket without a server, and one
// whose process never speaks, do not.
func TestAnswers(t *testing.T) {
	path := socketPath(t)
	startBackend(t, path, echo)
	if err := proxy.Answers(withTimeout(t, time.Minute), path); err != nil {
		t.Error(err)
	}
	silent := socketPath(t)
	listen(t, silent)
	for _, path := range []string{silent, silent + "2"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := proxy.Answers(ctx, path); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
