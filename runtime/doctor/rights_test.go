package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// TestWithoutRights: a user who may not open a socket or a file learns nothing of it, and no finding says that it is wrong.
func TestWithoutRights(t *testing.T) {
	denied := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)}
	n := &node{config: new(config.Config), backendErr: denied, pluginErr: denied}
	for name, find := range map[string]func(context.Context, *node) ([]found, error){
		"backend-answers": findBackendAnswers, "plugin-files": findPluginFiles, "plugin-reach": findPluginReach,
	} {
		if all, err := find(t.Context(), n); all != nil || !errors.Is(err, denied) {
			t.Errorf("%s: got %v, %v", name, all, err)
		}
	}
}

// TestPluginsTakeLong: that there was no time to load all plugins is no fault of one.
func TestPluginsTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{config: new(config.Config), Options: Options{Load: func(ctx context.Context, _ *config.Config) ([]string, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("loading plugin 10-a: %w", ctx.Err())
		}}}
		n.loadPlugins(t.Context())
		for _, find := range []func(context.Context, *node) ([]found, error){findPluginFiles, findPluginReach} {
			if all, err := find(t.Context(), n); all != nil || err == nil {
				t.Errorf("got %v, %v", all, err)
			}
		}
	})
}
