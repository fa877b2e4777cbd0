package koord_test

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW03NoLinux sends requests without a linux section, as crictl does, to a
// hook server that answers as if there were one. koord-runtime-proxy writes
// into what is not there; wasmproxy refuses a cgroup parent for a pod that kubelet
// gave none.
func TestW03NoLinux(t *testing.T) {
	const crash = "proxy has ended: panic: .*nil pointer"
	bare := func() *cri.PodSandboxConfig {
		return with(podConfig(), func(c *cri.PodSandboxConfig) { c.Linux = nil })
	}
	tests(t, map[string]scenario{
		"pod": {incumbent: crash, run: func(n *node) error {
			n.serve("10-a.json", answering(&podResponse{CgroupParent: "/elsewhere"}), "Ignore", "PreRunPodSandbox")
			n.start()
			if _, err := n.runPod(bare()); n.well(err) != nil {
				return n.well(err)
			}
			return want("cgroup parent", lastRequest[*cri.RunPodSandboxRequest](n.runtime).GetConfig().GetLinux().GetCgroupParent(), "")
		}},
		"container": {incumbent: crash, run: func(n *node) error {
			n.serve("10-a.json", nil, "Ignore", "PreCreateContainer")
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			_, err = n.create(pod, with(containerConfig(), func(c *cri.ContainerConfig) { c.Linux = nil }), podConfig())
			if n.well(err) != nil {
				return n.well(err)
			}
			return want("linux section", lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig().GetLinux(), (*cri.LinuxContainerConfig)(nil))
		}},
		"sandbox config": {incumbent: crash, run: func(n *node) error {
			n.serve("10-a.json", answering(&containerResponse{PodCgroupParent: "/elsewhere"}), "Ignore", "PreCreateContainer")
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			if _, err = n.create(pod, containerConfig(), nil); n.well(err) != nil {
				return n.well(err)
			}
			return want("cgroup parent", lastRequest[*cri.CreateContainerRequest](n.runtime).GetSandboxConfig().GetLinux().GetCgroupParent(), "")
		}},
	})
}
