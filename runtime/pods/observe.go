package pods

import (
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Observe takes note of a CRI call that the backend answered with OK: asked is
// the request as kubelet sent it (nil means the same as sent), sent as the
// backend got it, resp the answer. Messages of other calls, and of pods and
// containers that nothing is known of, are ignored. The messages become the
// store's: the caller may still read them, but never change them.
func (s *Store) Observe(asked, sent, resp proto.Message) {
	if asked == nil {
		asked = sent
	}
	switch req := sent.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		s.ranPod(as[*runtimeapi.RunPodSandboxRequest](asked), req, as[*runtimeapi.RunPodSandboxResponse](resp))
	case *runtimeapi.StopPodSandboxRequest:
		s.stoppedPod(req.GetPodSandboxId())
	case *runtimeapi.RemovePodSandboxRequest:
		s.removedPod(req.GetPodSandboxId())
	case *runtimeapi.UpdatePodSandboxResourcesRequest:
		s.updatedPod(req)
	case *runtimeapi.CreateContainerRequest:
		s.createdContainer(as[*runtimeapi.CreateContainerRequest](asked), req, as[*runtimeapi.CreateContainerResponse](resp))
	case *runtimeapi.StartContainerRequest:
		s.editContainer(req.GetContainerId(), inState(runtimeapi.ContainerState_CONTAINER_RUNNING))
	case *runtimeapi.StopContainerRequest:
		s.editContainer(req.GetContainerId(), inState(runtimeapi.ContainerState_CONTAINER_EXITED))
	case *runtimeapi.RemoveContainerRequest:
		s.removedContainer(req.GetContainerId())
	case *runtimeapi.UpdateContainerResourcesRequest:
		s.editContainer(req.GetContainerId(), func(c Container) Container { return updated(c, req) })
	case *runtimeapi.RestorePodRequest:
		s.restoredPod(as[*runtimeapi.RestorePodRequest](asked), req, as[*runtimeapi.RestorePodResponse](resp))
	}
}

// as returns m as a T, or a nil T, whose getters answer zero.
func as[T proto.Message](m proto.Message) T {
	t, _ := m.(T)
	return t
}

func (s *Store) ranPod(asked, sent *runtimeapi.RunPodSandboxRequest, resp *runtimeapi.RunPodSandboxResponse) {
	s.putPod(newPod(resp.GetPodSandboxId(), asked.GetConfig(), sent.GetConfig(), sent.GetRuntimeHandler()))
}

func newPod(id string, asked, sent *runtimeapi.PodSandboxConfig, handler string) Pod {
	p := Pod{ID: id, Config: sent, Asked: asked, RuntimeHandler: handler, State: runtimeapi.PodSandboxState_SANDBOX_READY}
	if p.Config == nil {
		p.Config = &runtimeapi.PodSandboxConfig{}
	}
	return p
}

func (s *Store) putPod(p Pod) {
	if p.ID == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods.put(p.ID, p)
}

// stoppedPod follows StopPodSandbox, which ends the containers too.
func (s *Store) stoppedPod(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _, _ = s.pods.find(id)
	s.pods.edit(id, func(p Pod) Pod {
		p.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		return p
	})
	for c := range s.members[id] {
		s.containers.edit(c, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
	}
}

func inState(state runtimeapi.ContainerState) func(Container) Container {
	return func(c Container) Container {
		c.State = state
		return c
	}
}

func (s *Store) removedPod(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removePod(id)
}

// updatedPod follows UpdatePodSandboxResources, whose messages are whole sums:
// what is given replaces what was.
func (s *Store) updatedPod(req *runtimeapi.UpdatePodSandboxResourcesRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods.edit(req.GetPodSandboxId(), func(p Pod) Pod {
		p.Config = withPodResources(p.Config, req.GetOverhead(), req.GetResources())
		if req.GetOverhead() != nil {
			p.Unreported &^= PodOverhead
		}
		if req.GetResources() != nil {
			p.Unreported &^= allResources
		}
		return p
	})
}

func (s *Store) createdContainer(asked, sent *runtimeapi.CreateContainerRequest, resp *runtimeapi.CreateContainerResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The pod may be given by a prefix of its ID.
	podID, pod, _ := s.pods.find(sent.GetPodSandboxId())
	if config := asked.GetSandboxConfig(); pod.Unreported != 0 && config.GetMetadata() != nil {
		s.pods.edit(podID, func(p Pod) Pod { return completedByKubelet(p, config) })
	}
	s.addContainer(Container{
		ID: resp.GetContainerId(), PodID: podID, Config: sent.GetConfig(),
		CgroupParent: sent.GetSandboxConfig().GetLinux().GetCgroupParent(),
	})
}

// completedByKubelet takes the config that kubelet sends with each container for what nobody
// reported of the pod. A cgroup parent that was reported stays: a plugin may have chosen it.
func completedByKubelet(p Pod, config *runtimeapi.PodSandboxConfig) Pod {
	if parent := p.Config.GetLinux().GetCgroupParent(); parent != "" && parent != config.GetLinux().GetCgroupParent() {
		config = proto.CloneOf(config)
		if config.Linux == nil {
			config.Linux = &runtimeapi.LinuxPodSandboxConfig{}
		}
		config.Linux.CgroupParent = parent
	}
	p.Config, p.Unreported = config, 0
	return p
}

// addContainer puts a container that was just made. It needs the lock.
func (s *Store) addContainer(c Container) {
	if c.ID == "" {
		return
	}
	if c.Config == nil {
		c.Config = &runtimeapi.ContainerConfig{}
	}
	c.State = runtimeapi.ContainerState_CONTAINER_CREATED
	s.putContainer(c)
}

func (s *Store) removedContainer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeContainer(id)
}

// updated follows UpdateContainerResources: what the request sets changes, but
// for oom_score_adj, which no runtime takes there.
func updated(c Container, req *runtimeapi.UpdateContainerResourcesRequest) Container {
	over := req.GetLinux()
	if over.GetOomScoreAdj() != 0 {
		over = proto.CloneOf(over)
		over.OomScoreAdj = 0
	}
	c.Config = withResources(c.Config, over)
	c.Config = withAnnotations(c.Config, req.GetAnnotations())
	return c
}

// restoredPod follows RestorePod, which makes a sandbox and its containers at
// once; the answer tells them apart by the names in their configs.
func (s *Store) restoredPod(asked, sent *runtimeapi.RestorePodRequest, resp *runtimeapi.RestorePodResponse) {
	p := newPod(resp.GetPodSandboxId(), asked.GetConfig(), sent.GetConfig(), sent.GetRuntimeHandler())
	s.putPod(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, restored := range resp.GetRestoredContainers() {
		for _, config := range sent.GetContainerConfigs() {
			if config.GetMetadata().GetName() == restored.GetName() {
				s.addContainer(Container{ID: restored.GetContainerId(), PodID: p.ID, Config: config})
			}
		}
	}
}
