// Package faults_test is `make e2e-faults`: a real kubelet runs pods through wasmproxy on a real
// container runtime, and parts of the node are killed, frozen or starved at steps of the pods' life.
package faults_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

func TestMain(m *testing.M) {
	node.Main(m, node.Programs(append(artifact.APIServer(), artifact.Kubelet())...), node.HookServers)
}
