package koord_test

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestW14HungHook has a hook server accept a call and not answer. The plugin's
// time is over before kubelet's is, so that Ignore goes on, and Fail says what
// it is that hangs. koord-runtime-proxy waits until kubelet gives up.
func TestW14HungHook(t *testing.T) {
	const gaveUp = "kubelet gave up: .*DeadlineExceeded"
	tests(t, map[string]scenario{
		"ignored": {incumbent: gaveUp, run: func(n *node) error {
			n.serve("10-a.json", hanging("PreRunPodSandbox"), "Ignore", "PreRunPodSandbox")
			n.start()
			if err := n.timely(func() error { _, err := n.runPod(podConfig()); return err }); err != nil {
				return err
			}
			return want("pods at the runtime", len(n.runtime.calls("RunPodSandbox")), 1)
		}},
		"not ignored": {incumbent: gaveUp, run: func(n *node) error {
			n.serve("10-a.json", hanging("PreRunPodSandbox"), "Fail", "PreRunPodSandbox")
			n.start()
			err := n.timely(func() error { _, err := n.runPod(podConfig()); return err })
			if status.Code(err) != codes.Unavailable {
				return wrong("a pod that its plugin must see: %v", err)
			}
			return want("pods at the runtime", len(n.runtime.calls("RunPodSandbox")), 0)
		}},
		"post hook": {incumbent: gaveUp, run: func(n *node) error {
			server := n.serve("10-a.json", hanging("PostStartContainer"), "Ignore", "PostStartContainer")
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			container, err := n.create(pod, containerConfig(), podConfig())
			n.must(err)
			if err := n.timely(func() error { return n.startContainer(container) }); err != nil {
				return err
			}
			n.eventually("the server is told", func() error {
				return want("hooks", len(server.toldOf("PostStartContainer")), 1)
			})
			return nil
		}},
	})
}

// timely returns the error of a call, and says so if kubelet had to give up.
func (n *node) timely(call func() error) error {
	start := time.Now()
	err := call()
	if time.Since(start) > deadline*9/10 {
		return wrong("kubelet gave up: %v", err)
	}
	return err
}
