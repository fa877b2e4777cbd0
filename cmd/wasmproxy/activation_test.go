package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// unit is a service manager: it holds a socket for the proxy, starts it with the descriptor,
// and takes its messages, as systemd does.
type unit struct {
	t      *testing.T
	dir    string
	socket *net.UnixListener
	notify *net.UnixConn
	stderr bytes.Buffer // to be read after the end
	cmd    *exec.Cmd
}

func newUnit(t *testing.T) *unit {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	u := &unit{t: t, dir: dir}
	if u.socket, err = net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/kubelet.sock", Net: "unix"}); err != nil {
		t.Fatal(err)
	}
	if u.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/notify", Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.socket.Close()
		u.notify.Close()
	})
	return u
}

// start starts the proxy with these descriptors, whose names are joined by colons.
func (u *unit) start(names, listen string, files ...*os.File) {
	u.t.Helper()
	program, err := exec.LookPath("wasmproxy") // the test binary, see TestMain
	if err != nil {
		u.t.Fatal(err)
	}
	u.cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", program, "serve", "--listen", listen, "--backend", u.dir+"/runtime.sock",
		"--plugin-dir", u.dir+"/plugins.d", "--hook-dir", "", "--cache-dir", "", "--state-dir", "", "--data-dir", "", "--admin-socket", "", "--status-socket", "", "--cgroup-root", "")
	count := string(rune('0' + len(files)))
	u.cmd.Env = append(os.Environ(), "LISTEN_FDS="+count, "LISTEN_FDNAMES="+names, "NOTIFY_SOCKET="+u.dir+"/notify", "WATCHDOG_USEC=1500000")
	u.cmd.Stderr, u.cmd.ExtraFiles = &u.stderr, files
	if err := u.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { u.cmd.Process.Kill() })
}

// await takes messages until one has the text.
func (u *unit) await(text string) {
	u.t.Helper()
	b := make([]byte, 4<<10)
	u.notify.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		n, err := u.notify.Read(b)
		if err != nil {
			u.t.Fatalf("waiting for %q: %v", text, err)
		}
		if strings.Contains(string(b[:n]), text) {
			return
		}
	}
}

func (u *unit) file() *os.File {
	u.t.Helper()
	f, err := u.socket.File()
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { f.Close() })
	return f
}

// TestSocketActivation: a call that comes before the proxy waits for it and is answered; systemd
// learns that calls are served, that the proxy answers itself, and that it stops. The socket
// stays, so a call after the end waits for the next process.
func TestSocketActivation(t *testing.T) {
	u := newUnit(t)
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + u.dir + "/runtime.sock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	conn, err := grpc.NewClient("unix://"+u.socket.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	for range 2 { // the second takes the socket over from the first
		answer := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := runtimeapi.NewRuntimeServiceClient(conn).Version(ctx, &runtimeapi.VersionRequest{}, grpc.WaitForReady(true))
			answer <- err
		}()
		u.start("wasmproxy.socket", "unix://"+u.socket.Addr().String(), u.file())
		u.await("READY=1")
		if err := <-answer; err != nil {
			t.Errorf("a call from before the start: %v", err)
		}
		u.await("WATCHDOG=1")
		u.cmd.Process.Signal(syscall.SIGTERM)
		u.await("STOPPING=1")
		if err := u.cmd.Wait(); err != nil {
			t.Errorf("the proxy ended with %v:\n%s", err, &u.stderr)
		}
	}
	if left, _ := filepath.Glob(u.dir + "/kubelet.sock*"); len(left) != 1 {
		t.Errorf("the files of the socket are %q", left)
	}
	if late, err := net.Dial("unix", u.socket.Addr().String()); err != nil {
		t.Errorf("systemd's socket does not answer after the end: %v", err)
	} else {
		late.Close()
	}
}

// TestSocketActivationRefused: a socket that kubelet would wait on in vain is an error that
// says which key of the unit is wrong.
func TestSocketActivationRefused(t *testing.T) {
	u := newUnit(t)
	own := u.socket.Addr().String()
	datagram, err := u.notify.File()
	if err != nil {
		t.Fatal(err)
	}
	defer datagram.Close()
	for want, c := range map[string]struct {
		names, listen string
		files         []*os.File
	}{
		`its name is "other.socket", the proxy takes "wasmproxy.socket": set FileDescriptorName=wasmproxy.socket`:     {"other.socket", own, []*os.File{u.file()}},
		`it listens on ` + own + `, and the setting listen is ` + own + `2: set ListenStream= of the unit, or listen`: {"wasmproxy.socket", own + "2", []*os.File{u.file()}},
		`it passed 2 sockets, the proxy takes one: leave one ListenStream= in wasmproxy.socket`:                       {"wasmproxy.socket:wasmproxy.socket", own, []*os.File{u.file(), datagram}},
		`taking the socket wasmproxy.socket from systemd: it does not listen for connections: `:                       {"wasmproxy.socket", own, []*os.File{datagram}},
	} {
		u.stderr.Reset()
		u.start(c.names, c.listen, c.files...)
		if err := u.cmd.Wait(); err == nil || !strings.Contains(u.stderr.String(), want) {
			t.Errorf("got %v and %q, want %q", err, &u.stderr, want)
		}
	}
}
