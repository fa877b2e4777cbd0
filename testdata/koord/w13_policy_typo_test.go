package koord_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestW13PolicyTypo misspells what must not be ignored, in a file that was good before. koord-runtime-proxy
// ignores every policy but "Fail", and every endpoint that it cannot dial.
func TestW13PolicyTypo(t *testing.T) {
	const incumbent = "a pod runs without its hook"
	broken := refusing(status.Error(codes.Internal, "broken"))
	tests(t, map[string]scenario{
		"policy": {incumbent: incumbent, run: func(n *node) error {
			server := n.serve("10-a.json", broken, "Fail", "PreRunPodSandbox")
			n.start()
			n.register("10-a.json", registration(server.socket, "fail", "PreRunPodSandbox"))
			return n.refused(`\"fail\" is neither`)
		}},
		"endpoint": {incumbent: incumbent, run: func(n *node) error {
			n.serve("10-a.json", broken, "Fail", "PreRunPodSandbox")
			n.start()
			n.register("10-a.json", registration("run/a.sock", "Fail", "PreRunPodSandbox"))
			return n.refused(`is not the absolute path`)
		}},
	})
}

// refused wants that no pod runs, and that the log of wasmproxy says why.
func (n *node) refused(why string) error {
	n.Helper()
	for range 30 { // until it must have been seen
		if _, err := n.runPod(podConfig()); err == nil {
			return wrong("a pod runs without its hook")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if n.proxy == wasmproxy {
		n.awaitLog(why)
	}
	return want("pods at the runtime", len(n.runtime.calls("RunPodSandbox")), 0)
}
