package koord_test

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW21NewerCRI makes calls that neither proxy was built with. Both pass them
// on: koord-runtime-proxy too, in the releases since it speaks CRI v1 at all,
// which was a year after kubelet required it.
func TestW21NewerCRI(t *testing.T) {
	both(t, func(n *node) {
		n.start()
		for _, method := range []string{"/runtime.v1.RuntimeService/FutureMethod", "/runtime.v2.RuntimeService/Version"} {
			resp := &cri.VersionRequest{}
			ctx, cancel := n.timed()
			n.check(n.conn.Invoke(ctx, method, &cri.VersionRequest{Version: "of the future"}, resp))
			cancel()
			n.check(want(method, resp.GetVersion(), "of the future"))
		}
	})
}
