package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// The command changes the file that the proxy names, and not its own, and ends when the proxy has seen that and has undone
// all values. The proxy is a stand-in that is late with both.
func TestBypassWaitsForTheProxy(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "bypass")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	now, asked := status.Bypass{File: file}, 0
	go admin.Serve(t.Context(), l, admin.Sources{Bypass: func() status.Bypass {
		s, err := bypass.Read(file)
		if err != nil {
			t.Error(err)
		}
		if asked++; asked%3 == 0 {
			now.On, now.Undone = s.On, s.On && now.On
		}
		return now
	}})
	for _, c := range []struct{ args, want string }{
		{"on --reason INC-1", "by " + file + ": INC-1\n"},
		{"on --reason INC-2", "by " + file + ": INC-2\n"},
		{"off", "plugins are not bypassed\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"bypass"}, strings.Fields(c.args)...)
		code := run(t.Context(), newRoot(""), append(args, "--admin-socket", socket, "--bypass-file", filepath.Join(dir, "another")), &stdout, &stderr)
		if code != 0 || !strings.HasSuffix(stdout.String(), c.want) {
			t.Errorf("bypass %s: exit code %d\n%s%s", c.args, code, stdout.String(), stderr.String())
		}
		if s, err := bypass.Read(file); err != nil || s.On != now.On {
			t.Errorf("bypass %s: the command has ended, and the proxy has not seen %+v, %v", c.args, s, err)
		}
	}
}

// A command that is interrupted while the proxy does not answer changes nothing, and fails.
func TestBypassInterrupted(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "bypass")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		interrupt()
		if err == nil {
			defer conn.Close()
		}
		<-t.Context().Done()
	}()
	var stdout, stderr bytes.Buffer
	code := run(ctx, newRoot(""), []string{"bypass", "on", "--admin-socket", socket, "--bypass-file", file}, &stdout, &stderr)
	if code != exitFailure || !strings.Contains(stderr.String(), "the command was interrupted, and has changed nothing") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
	if s, err := bypass.Read(file); err != nil || s.On {
		t.Errorf("the bypass is %+v, %v", s, err)
	}
}

// crashing is a proxy in the place of one that crashes: it is there again after a while.
type crashing struct {
	t       *testing.T
	socket  string
	sources admin.Sources
	stop    context.CancelFunc
}

// start has a proxy listen.
func (c *crashing) start() {
	l, err := net.Listen("unix", c.socket)
	if err != nil {
		c.t.Error(err)
		return
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(c.t.Context())
	go admin.Serve(ctx, l, c.sources)
}

// The command waits also if the proxy crashes meanwhile. One that goes away after it has seen the file is no error: the file stays.
func TestBypassOfAProxyThatCrashes(t *testing.T) {
	for name, seen := range map[string]bool{"before it sees the file": false, "after it has seen the file": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "bypass")
			proxy := &crashing{t: t, socket: filepath.Join(dir, "admin.sock")}
			crashed := make(chan struct{})
			proxy.sources.Bypass = func() status.Bypass {
				s, err := bypass.Read(file)
				if err != nil {
					t.Error(err)
				}
				if !s.On {
					return status.Bypass{File: file}
				}
				select {
				case <-crashed:
					return status.Bypass{File: file, On: true, Undone: true}
				default:
					close(crashed)
					proxy.stop()
					return status.Bypass{File: file, On: seen}
				}
			}
			proxy.start()
			go func() {
				<-crashed
				if time.Sleep(300 * time.Millisecond); !seen {
					proxy.start()
				}
			}()
			var stdout, stderr bytes.Buffer
			args := []string{"bypass", "on", "--admin-socket", proxy.socket, "--bypass-file", filepath.Join(dir, "another")}
			code := run(t.Context(), newRoot(""), args, &stdout, &stderr)
			if s, err := bypass.Read(file); code != 0 || err != nil || !s.On {
				t.Errorf("exit code %d, the bypass is %+v, %v\n%s%s", code, s, err, stdout.String(), stderr.String())
			}
			if left := strings.Contains(stdout.String(), "Values of plugins are left"); left != seen {
				t.Errorf("values are left: %t\n%s", left, stdout.String())
			}
			if strings.Contains(stdout.String(), "No proxy answers") {
				t.Errorf("got %s", stdout.String())
			}
		})
	}
}

// What listens and is no proxy is an error, and nothing is changed.
func TestBypassOfAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "bypass")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go http.Serve(l, http.NotFoundHandler())
	for _, args := range []string{"bypass", "bypass on", "bypass off"} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), newRoot(""), append(strings.Fields(args), "--admin-socket", socket, "--bypass-file", file), &stdout, &stderr)
		const other = "answers with status 404: check that it is the admin socket"
		if code != exitFailure || stdout.Len() > 0 || !strings.Contains(stderr.String(), other) {
			t.Errorf("%s: exit code %d\n%s%s", args, code, stdout.String(), stderr.String())
		}
	}
	if s, err := bypass.Read(file); err != nil || s.On {
		t.Errorf("the bypass is %+v, %v", s, err)
	}
}

// A proxy that does not see the change has other files than the command.
func TestBypassUnseen(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "bypass")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go admin.Serve(t.Context(), l, admin.Sources{Bypass: func() status.Bypass { return status.Bypass{File: file} }})
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), newRoot(""), []string{"bypass", "on", "--admin-socket", socket}, &stdout, &stderr)
	const form = "wasmproxy: the command has changed the bypass file %s, " +
		"but the proxy answers, and still says that plugins are not bypassed: " +
		"run the command where the proxy's files are, such as with chroot /host, " +
		"or look in its log for \"cannot look for the bypass file\"\n"
	want := fmt.Sprintf(form, file)
	if code != exitFailure || stderr.String() != want {
		t.Errorf("exit code %d\n%s%s\nwant %s", code, stdout.String(), stderr.String(), want)
	}
}

// That no proxy has seen the bypass is said whatever the format is, and JSON stays JSON.
func TestBypassWithoutAProxy(t *testing.T) {
	dir := t.TempDir()
	args := []string{"bypass", "on", "--admin-socket", dir + "/admin.sock", "--bypass-file", dir + "/bypass"}
	for format, of := range map[string]func(stdout, stderr string) bool{
		"text": func(stdout, _ string) bool { return strings.Contains(stdout, "No proxy answers") },
		"json": func(stdout, stderr string) bool {
			return json.Valid([]byte(stdout)) && strings.Contains(stderr, "No proxy answers")
		},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), newRoot(""), append(args, "-o", format), &stdout, &stderr)
		if code != 0 || !of(stdout.String(), stderr.String()) {
			t.Errorf("%s: exit code %d\n%s%s", format, code, stdout.String(), stderr.String())
		}
	}
}
