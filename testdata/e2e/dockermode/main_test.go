// Package dockermode_test is the part of `make e2e-dockerd` in which wasmproxy stands before a real
// Docker Engine: Docker's client behaves as without it, also many at once, and restarts lose nothing that
// plugins see. Its wasmproxy has the race detector.
package dockermode_test

import (
	"os"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

func TestMain(m *testing.M) {
	os.Setenv("E2E_RUNTIME", "docker") // the only one that these tests are for
	node.Main(m, node.Raced)
}

// startDocker starts an Engine that has the image busybox.
func startDocker(t *testing.T) *node.Runtime {
	t.Helper()
	engine := node.StartRuntime(t)
	for _, args := range [][]string{{"pull", "-q", image.Busybox}, {"tag", image.Busybox, "busybox"}} {
		if out, err := node.Docker(t.Context(), engine.Endpoint, args...).CombinedOutput(); err != nil {
			t.Fatalf("docker %q: %v\n%s", args, err, out)
		}
	}
	return engine
}
