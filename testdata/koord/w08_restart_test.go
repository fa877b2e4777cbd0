package koord_test

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW08Restart kills the proxy and starts it again over a running container,
// and has its resources updated. koord-runtime-proxy comes back without
// resources, environment and cgroup parent, and drops what a server answers.
func TestW08Restart(t *testing.T) {
	tests(t, map[string]scenario{
		"what the server is told": {incumbent: "container_resources: got", run: func(n *node) error {
			server, container := n.restarted(nil)
			if err := n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{CpuShares: 256}}); err != nil {
				return n.well(err)
			}
			told := lastTold[*containerRequest](server, "PreUpdateContainerResources")
			expected := with(hookResources(), func(r *hookResourcesMessage) { r.CpuShares = 256 })
			return join(
				wantProto("container_resources", told.GetContainerResources(), expected),
				want("container_envs", told.GetContainerEnvs(), map[string]string{"GREETING": "hello", "PORT": "80", "EMPTY": ""}),
				want("pod_cgroup_parent", told.GetPodCgroupParent(), "/kubepods/burstable/poduid-1"),
			)
		}},
		"what it answers": {incumbent: "cpu_quota at the runtime: got", run: func(n *node) error {
			_, container := n.restarted(answering(&containerResponse{ContainerResources: &hookResourcesMessage{CpuQuota: 12345}}))
			if err := n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{CpuShares: 256}}); err != nil {
				return n.well(err)
			}
			return want("cpu_quota at the runtime", lastRequest[*cri.UpdateContainerResourcesRequest](n.runtime).GetLinux().GetCpuQuota(), int64(12345))
		}},
	})
}

// restarted is a node whose proxy was killed and started again after a container was started.
func (n *node) restarted(a answer) (*hookServer, string) {
	n.Helper()
	server := n.serve("10-a.json", a, "Ignore", "PreUpdateContainerResources")
	n.start()
	_, container := n.running()
	n.kill()
	n.startProxy()
	n.awaitServing()
	return server, container
}
