package host

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// TestUndo: plugins are bypassed, unless they are already, and the command waits until their
// values are undone. A proxy that does not run is said, and is no error.
func TestUndo(t *testing.T) {
	for name, already := range map[string]bool{"on by the command": false, "on before": true} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "wp")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			c := &config.Config{AdminSocket: dir + "/admin.sock"}
			l, err := net.Listen("unix", c.AdminSocket)
			if err != nil {
				t.Fatal(err)
			}
			file, asked := dir+"/bypass", 0
			if already {
				if err := bypass.Make(file, "INC-1"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- admin.Serve(ctx, l, admin.Sources{
					Observer: observe.Discard(),
					Bypass: func() status.Bypass {
						asked++
						is, err := bypass.Read(file)
						if err != nil {
							t.Error(err)
						}
						return status.Bypass{On: is.On, File: file, Undone: is.On && asked > 3}
					},
				})
			}()
			out := new(bytes.Buffer)
			p := &removal{host: &Host{Root: "/", Out: out}, settings: c}
			if err := p.undo(t.Context()); err != nil || !strings.Contains(out.String(), "are undone") {
				t.Errorf("error %v, it says %q", err, out)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			want := map[bool]string{false: reason, true: "INC-1"}[already]
			if is, err := bypass.Read(file); err != nil || is.Reason != want || asked < 4 {
				t.Errorf("the bypass is %+v, %v, asked %d times", is, err, asked)
			}
			out.Reset()
			if err := p.undo(t.Context()); err != nil || !strings.Contains(out.String(), "no proxy runs, so the values that plugins have set stay") {
				t.Errorf("error %v, it says %q", err, out)
			}
		})
	}
}

// TestEndBypass: the file of uninstalling goes, and one of the operator's stays.
func TestEndBypass(t *testing.T) {
	root := Root(t.TempDir())
	for why, stays := range map[string]bool{reason: false, "INC-1": true, "": true} {
		file := filepath.Join(string(root), "bypass")
		if err := bypass.Make(file, why); err != nil {
			t.Fatal(err)
		}
		if err := root.endBypass("/bypass"); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); (err == nil) != stays {
			t.Errorf("reason %q: %v", why, err)
		}
		os.Remove(file)
	}
	if err := root.endBypass("/bypass"); err != nil {
		t.Error(err)
	}
}
