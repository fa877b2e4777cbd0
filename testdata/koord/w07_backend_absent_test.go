package koord_test

import (
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW07BackendAbsent starts a proxy before the runtime. koord-runtime-proxy
// gives up, and its process stays without a socket for ever.
func TestW07BackendAbsent(t *testing.T) {
	scenario{incumbent: "the proxy does not serve after its runtime has started", run: func(n *node) error {
		server := n.serve("10-a.json", nil, "Fail", "PreRunPodSandbox")
		n.startProxy()
		n.awaitLog("/runtime.sock: connect: no such file or directory")
		n.must(n.runtime.start())
		if err := n.serves(deadline); err != nil {
			return wrong("the proxy does not serve after its runtime has started: %v", err)
		}
		if _, err := n.runPod(podConfig()); err != nil {
			return n.well(err)
		}
		return want("hooks", len(server.toldOf("PreRunPodSandbox")), 1)
	}}.test(t)
}

// serves asks for the version until it is answered.
func (n *node) serves(within time.Duration) (err error) {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err = n.kubelet.Version(n.Context(), &cri.VersionRequest{}); err == nil {
			return nil
		}
	}
	return err
}
