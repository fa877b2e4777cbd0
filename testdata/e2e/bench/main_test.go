// Package bench_test is `make bench-node`: what wasmproxy costs on a node with a real containerd. It is
// a harness: a slow result does not fail it. A pod that does not run does, and a plugin that fails.
package bench_test

import (
	"context"
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// bundled are the five plugins of the proxy that has some, in the order of its chain.
var bundled = []string{"audit", "default-annotations", "koordlet", "memory-qos", "qos"}

func TestMain(m *testing.M) {
	node.MainNamed("bench-node", m, func(_ context.Context, b *artifact.Builder, w isolation.Workspace) error {
		for _, name := range bundled {
			if name == "qos" {
				continue // it is there
			}
			if err := os.Symlink(b.ProjectFile("plugins-wasm/"+name+"/"+name+".wasm"), w.Program(name+".wasm")); err != nil {
				return err
			}
		}
		return nil
	})
}
