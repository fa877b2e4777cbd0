// Package bench_test is `make bench-node`: what wasmproxy costs on a node with a real containerd. It is
// a harness: a slow result does not fail it. A pod that does not run does, and a plugin that fails.
package bench_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// bundled are the five plugins of the proxy that has some, in the order of its chain.
var bundled = []string{"audit", "default-annotations", "koordlet", "memory-qos", "qos"}

func TestMain(m *testing.M) { node.MainNamed("bench-node", m, node.Bundled(bundled...)) }
