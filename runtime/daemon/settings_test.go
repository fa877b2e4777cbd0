package daemon_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	sources "github.com/wasmproxy/wasmproxy/runtime/settings"
)

// TestSettingsThatAreNotKept: data-dir does not have what it is to have while the copy of the settings cannot be saved.
func TestSettingsThatAreNotKept(t *testing.T) {
	n := newNode(t)
	n.config.DataDir, n.config.AdminSocket = filepath.Join(n.dir, "data"), filepath.Join(n.dir, "admin.sock")
	n.put("10-noop.wasm", "noop")
	file := config.File{Path: filepath.Join(n.dir, "wasmproxy.yaml"), Text: []byte("drain-timeout: 10s\n")}
	source := sources.New(func() config.File { return file }, func(config.File) (*config.Config, error) { return n.config, nil })
	_, err := source.Load()
	n.must(err)
	kept := filepath.Join(n.config.DataDir, "last-good", fmt.Sprintf("settings-%.8x.json", sha256.Sum256([]byte(file.Path))))
	n.must(os.MkdirAll(kept, 0o700)) // a directory, which no file replaces
	n.start(func(ctx context.Context, c *config.Config, o observe.Observer) error {
		return daemon.Serve(ctx, "test", c, source, o)
	})
	n.awaitSocket()
	n.await("last good settings not saved")
	n.awaitMetric("wasmproxy_state_saved 0")
}
