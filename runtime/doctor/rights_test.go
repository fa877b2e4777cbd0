package doctor

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

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
