package koord_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestW16PostHook holds that post hooks are called when something happened, and
// that their errors are heard. koord-runtime-proxy calls them after failed calls
// too, and drops their errors.
func TestW16PostHook(t *testing.T) {
	tests(t, map[string]scenario{
		"after a failure": {incumbent: "hooks of a container that did not start: got 1, want 0", run: func(n *node) error {
			server := n.serve("10-a.json", nil, "Ignore", "PostStartContainer")
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			container, err := n.create(pod, containerConfig(), podConfig())
			n.must(err)
			n.runtime.setFault(failing("StartContainer"))
			if err := n.startContainer(container); err == nil {
				n.Fatal("the runtime did not fail")
			}
			n.settle()
			return want("hooks of a container that did not start", len(server.toldOf("PostStartContainer")), 0)
		}},
		"error": {incumbent: "nobody hears of the error", run: func(n *node) error {
			server := n.serve("10-a.json", refusing(status.Error(codes.Internal, "no such device")), "Fail", "PostStartContainer")
			n.start()
			n.running()
			n.eventually("the server is told", func() error {
				return want("hooks", len(server.toldOf("PostStartContainer")), 1)
			})
			return n.settled(func() error {
				if !strings.Contains(n.log(), "no such device") {
					return wrong("nobody hears of the error")
				}
				return nil
			})
		}},
	})
}
