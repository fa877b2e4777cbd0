// Package suite_test is `make e2e` and its like for other runtimes: a real kubelet
// runs real containers through wasmproxy, and a plugin changes their cgroups. Every
// test has a node of its own, inside package isolation.
package suite_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

func TestMain(m *testing.M) {
	node.Main(m, node.Whole()...)
}
