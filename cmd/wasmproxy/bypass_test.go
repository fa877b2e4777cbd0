package main

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

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
