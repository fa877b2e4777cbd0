// Package fleet_test is `make e2e-fleet`: a real kubelet with containerd joins a real API server, and the fleet's agent brings plugins to
// its proxy while pods of Deployments run. It has one node: steps over several are tested in fleet/cluster.
package fleet_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// The modules that the plugin is of, among the programs.
const (
	first  = "first.wasm"  // does nothing
	second = "second.wasm" // gives each container a CPU quota of 200 ms
	bad    = "fail.wasm"   // fails in each call
	setter = "setter.wasm" // sets what annotations of pods ask for
)

func TestMain(m *testing.M) {
	programs := append(artifact.APIServer(), artifact.Kubelet(), artifact.ControllerManager())
	node.Main(m, node.Programs(programs...), func(ctx context.Context, b *artifact.Builder, w isolation.Workspace) error {
		return errors.Join(b.Fleet(ctx, w.Bin()),
			os.Symlink(b.ProjectFile("testdata/wat/noop.wasm"), w.Program(first)),
			os.Symlink(b.ProjectFile("testdata/wat/quota.wasm"), w.Program(second)))
	})
}
