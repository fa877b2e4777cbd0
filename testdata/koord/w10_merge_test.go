package koord_test

import (
	"strconv"
	"testing"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW10Merge holds what reaches the runtime when a hook server names some of
// the fields only. koord-runtime-proxy takes zero for a value, and what it has
// stored for what kubelet asks.
func TestW10Merge(t *testing.T) {
	sharesOnly := answering(&containerResponse{ContainerResources: &hookResourcesMessage{CpuShares: 77}})
	tests(t, map[string]scenario{
		"fields that were not named": {incumbent: `resources: got .*cpu_shares:77`, run: func(n *node) error {
			got, err := n.created(sharesOnly, containerConfig())
			return join(err, wantProto("resources", got.GetLinux().GetResources(), with(resources(), func(r *cri.LinuxContainerResources) { r.CpuShares = 77 })))
		}},
		"hugepage limits": {incumbent: "hugepage limits: got", run: func(n *node) error {
			limits := []*hook.HugepageLimit{{PageSize: "2MB", Limit: 4 << 20}}
			got, err := n.created(answering(&containerResponse{ContainerResources: &hookResourcesMessage{HugepageLimits: limits}}), containerConfig())
			return join(err, want("hugepage limits", got.GetLinux().GetResources().GetHugepageLimits()[0].GetLimit(), uint64(4<<20)))
		}},
		"partial update": {incumbent: `update: got .*cpu_period:100000`, run: func(n *node) error {
			got, err := n.updated(echoing, &cri.LinuxContainerResources{CpuShares: 256}, nil)
			return join(err, wantProto("update", got.GetLinux(), &cri.LinuxContainerResources{CpuShares: 256}))
		}},
		"annotations of an update": {incumbent: "annotations: got map.*restartCount", run: func(n *node) error {
			theirs := map[string]string{"kubelet": "says"}
			got, err := n.updated(nil, resources(), theirs)
			return join(err, want("annotations", got.GetAnnotations(), theirs))
		}},
		"score and hugepages of an update": {incumbent: "oom_score_adj: got 900", run: func(n *node) error {
			got, err := n.updated(nil, &cri.LinuxContainerResources{CpuShares: 256, OomScoreAdj: 500}, nil)
			return join(err, want("oom_score_adj", got.GetLinux().GetOomScoreAdj(), int64(500)))
		}},
		"order of the environment": {incumbent: "environment: got", run: func(n *node) error {
			var pairs []string
			for i := range 40 {
				pairs = append(pairs, "NAME"+strconv.Itoa((i*17)%40), strconv.Itoa(i))
			}
			config := with(containerConfig(), func(c *cri.ContainerConfig) { c.Envs = envs(append(pairs, "NAME3", "again")...) })
			got, err := n.created(echoing, config)
			return join(err, wantProto("environment", &cri.ContainerConfig{Envs: got.GetEnvs()}, &cri.ContainerConfig{Envs: config.Envs}))
		}},
		"cgroup parent": {incumbent: `cgroup parent of the container: got /kubepods`, run: func(n *node) error {
			n.serve("10-a.json", answering(&podResponse{CgroupParent: "/kubepods/burstable/poduid-1/batch"}), "Fail", "PreRunPodSandbox")
			n.start()
			n.running()
			return want("cgroup parent of the container", lastRequest[*cri.CreateContainerRequest](n.runtime).GetSandboxConfig().GetLinux().GetCgroupParent(), "/kubepods/burstable/poduid-1/batch")
		}},
		"no change": {incumbent: `resources: got \{\}, want \{<nil>\}`, run: func(n *node) error {
			got, err := n.created(nil, with(containerConfig(), func(c *cri.ContainerConfig) { c.Linux.Resources = nil }))
			return join(err, wantProto("resources", got.GetLinux().GetResources(), (*cri.LinuxContainerResources)(nil)))
		}},
	})
}

// created has a container created, with a server that answers PreCreateContainer, and returns what reached the runtime.
func (n *node) created(a answer, config *cri.ContainerConfig) (*cri.ContainerConfig, error) {
	n.Helper()
	server := n.serve("10-a.json", a, "Fail", "PreCreateContainer")
	n.start()
	pod, err := n.runPod(podConfig())
	n.must(err)
	if _, err := n.create(pod, config, podConfig()); err != nil {
		return nil, n.well(err)
	}
	if len(server.toldOf("PreCreateContainer")) != 1 {
		n.Fatal("the server was not told")
	}
	return lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig(), nil
}

// updated is the same for the update of a running container.
func (n *node) updated(a answer, resources *cri.LinuxContainerResources, annotations map[string]string) (*cri.UpdateContainerResourcesRequest, error) {
	n.Helper()
	server := n.serve("10-a.json", a, "Fail", "PreUpdateContainerResources")
	n.start()
	_, container := n.running()
	if err := n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: resources, Annotations: annotations}); err != nil {
		return nil, n.well(err)
	}
	if len(server.toldOf("PreUpdateContainerResources")) != 1 {
		n.Fatal("the server was not told")
	}
	return lastRequest[*cri.UpdateContainerResourcesRequest](n.runtime), nil
}
