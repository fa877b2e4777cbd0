package koord_test

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW06FailedListing starts a proxy beside a runtime that has pods and cannot
// list them yet. koord-runtime-proxy ignores the error and never knows them.
func TestW06FailedListing(t *testing.T) {
	scenario{incumbent: "hooks of the update: got 0, want 1", run: func(n *node) error {
		server := n.serve("10-a.json", nil, "Ignore", "PreUpdateContainerResources")
		n.runtime.pods["pod"] = runRequest()
		n.runtime.containers["container"] = &cri.CreateContainerRequest{PodSandboxId: "pod", Config: containerConfig(), SandboxConfig: podConfig()}
		n.runtime.started["container"] = true
		n.runtime.setFault(failing("ListPodSandbox", "ListContainers"))
		n.start()
		n.eventually("the proxy asks what there is", func() error {
			return want("listings", len(n.runtime.calls("ListPodSandbox")) > 0, true)
		})
		n.runtime.setFault(nil)
		if err := n.update(&cri.UpdateContainerResourcesRequest{ContainerId: "container", Linux: resources()}); err != nil {
			return n.well(err)
		}
		return want("hooks of the update", len(server.toldOf("PreUpdateContainerResources")), 1)
	}}.test(t)
}
