package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// The command changes the file of a proxy that sees it but may not write there. The proxy is a
// stand-in: the sandbox of a systemd unit is not to be had in a test of this package.
func TestBypassOfAProxyThatMayNotWrite(t *testing.T) {
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "admin.sock"), filepath.Join(dir, "bypass")
	now := func() status.Bypass {
		s, err := bypass.Read(file)
		if err != nil {
			t.Error(err)
		}
		return status.Bypass{On: s.On, File: file, Since: s.Since, Reason: s.Reason, Undone: true}
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go admin.Serve(t.Context(), l, admin.Sources{
		Bypass: now,
		SetBypass: func(context.Context, bool, string) (status.Bypass, error) {
			return status.Bypass{}, errors.New("read-only file system")
		},
	})
	for _, c := range []struct{ args, want string }{
		{"on --reason INC-1", "by " + file + ": INC-1"},
		{"off", "plugins are not bypassed"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"bypass"}, strings.Fields(c.args)...)
		code := run(t.Context(), newRoot(""), append(args, "--admin-socket", socket, "--bypass-file", filepath.Join(dir, "another")), &stdout, &stderr)
		if code != 0 || !strings.Contains(stdout.String(), c.want) || strings.Contains(stdout.String(), "No proxy answers") {
			t.Errorf("bypass %s: exit code %d\n%s%s", c.args, code, stdout.String(), stderr.String())
		}
	}
}
