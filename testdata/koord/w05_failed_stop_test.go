package koord_test

import "testing"

// TestW05FailedStop has the runtime fail to stop a container and a pod, and
// kubelet try again. koord-runtime-proxy forgets both at the first attempt, so
// that nobody is told when they really stop.
func TestW05FailedStop(t *testing.T) {
	tests(t, map[string]scenario{
		"container": {incumbent: "PostStopContainer after the second stop: got 0, want 1", run: func(n *node) error {
			server := n.serve("10-a.json", nil, "Ignore", "PostStopContainer")
			n.start()
			_, container := n.running()
			return n.stopTwice(server, "StopContainer", func() error { return n.stopContainer(container) })
		}},
		"pod": {incumbent: "PostStopPodSandbox after the second stop: got 0, want 1", run: func(n *node) error {
			server := n.serve("10-a.json", nil, "Ignore", "PostStopPodSandbox")
			n.start()
			pod, _ := n.running()
			return n.stopTwice(server, "StopPodSandbox", func() error { return n.stopPod(pod) })
		}},
	})
}

// stopTwice stops twice, of which the first fails, and counts how often the hook is called for the second.
func (n *node) stopTwice(server *hookServer, method string, stop func() error) error {
	hook := "Post" + method
	n.runtime.setFault(failing(method))
	if err := stop(); err == nil {
		n.Fatal("the runtime did not fail")
	}
	n.settle()
	before := len(server.toldOf(hook))
	n.runtime.setFault(nil)
	if err := stop(); err != nil {
		return n.well(err)
	}
	return n.settled(func() error { return want(hook+" after the second stop", len(server.toldOf(hook))-before, 1) })
}
