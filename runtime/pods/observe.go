package pods

import (
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// Observe takes note of a CRI call that the backend answered with OK: requested is
// the request as kubelet sent it (nil if it was sent on unchanged), sent as the
// backend got it, resp the answer. Messages of other calls, and of pods and
// containers that nothing is known of, are ignored. The messages become the
// store's: the caller may still read them, but never change them.
func (s *Store) Observe(requested, sent, resp proto.Message) {
	unchanged := requested == nil
	if unchanged {
		requested = sent
	}
	m := cri.MethodOf(sent)
	if m == nil {
		return
	}
	ofPod, pod, container := m.Object == abi.Pod, cri.PodID(sent), cri.ContainerID(sent)
	switch m.Effect {
	case cri.Makes:
		if ofPod {
			s.madePod(m.Carries(requested), m.Carries(sent), unchanged, resp)
			s.restored(sent, resp)
		} else {
			s.createdContainer(m.Carries(requested), m.Carries(sent), pod, cri.ContainerID(resp))
		}
	case cri.Starts:
		s.startedContainer(container)
	case cri.Stops:
		if ofPod {
			s.stoppedPod(pod)
		} else {
			s.editContainer(container, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
		}
	case cri.Removes:
		if ofPod {
			s.removedPod(pod)
		} else {
			s.removedContainer(container)
		}
	case cri.Updates:
		if ofPod {
			s.updatedPod(pod, m.Carries(sent))
		} else {
			// What the request sets changes. So does oom_score_adj, which no runtime applies there: it is what kubelet wants now,
			// and tells the memory that the container requests.
			carried := m.Carries(sent)
			s.editContainer(container, func(c Container) Container {
				c.Config = withAnnotations(withResources(c.Config, *carried.Resources), *carried.Annotations)
				return c
			})
		}
	}
}

func (s *Store) madePod(requested, sent cri.Carried, unchanged bool, resp proto.Message) {
	p := Pod{
		ID: cri.PodID(resp), Config: *sent.Pod, Requested: *requested.Pod, Unchanged: unchanged,
		RuntimeHandler: *sent.RuntimeHandler, State: runtimeapi.PodSandboxState_SANDBOX_READY,
	}
	if p.ID == "" {
		return
	}
	if p.Config == nil {
		p.Config = &runtimeapi.PodSandboxConfig{}
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

// startedContainer follows StartContainer. Its pod is ready then: in Docker a container that is its own
// pod may start after it was stopped.
func (s *Store) startedContainer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_RUNNING))
	_, c, _ := s.containers.find(id)
	if p, known := s.pods.records[c.PodID]; known && p.State == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		s.pods.edit(c.PodID, func(p Pod) Pod {
			p.State = runtimeapi.PodSandboxState_SANDBOX_READY
			return p
		})
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
func (s *Store) updatedPod(id string, sent cri.Carried) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods.edit(id, func(p Pod) Pod {
		p.Config = withPodResources(p.Config, *sent.Overhead, *sent.Resources)
		if *sent.Overhead != nil {
			p.Unreported &^= PodOverhead
		}
		if *sent.Resources != nil {
			p.Unreported &^= allResources
		}
		return p
	})
}

func (s *Store) createdContainer(requested, sent cri.Carried, podID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The pod may be given by a prefix of its ID.
	podID, pod, _ := s.pods.find(podID)
	if config := *requested.Pod; pod.Unreported != 0 && config.GetMetadata() != nil {
		s.pods.edit(podID, func(p Pod) Pod { return completedByKubelet(p, config) })
	}
	s.endEarlier(podID, (*sent.Container).GetMetadata())
	s.addContainer(Container{
		ID: id, PodID: podID, Config: *sent.Container,
		CgroupParent: (*sent.Pod).GetLinux().GetCgroupParent(),
	})
}

// endEarlier notes that the earlier attempts of a container have ended: kubelet makes the next one
// only then, and no call shows that a container ends by itself. It needs the lock.
func (s *Store) endEarlier(podID string, next *runtimeapi.ContainerMetadata) {
	for id := range s.members[podID] {
		c := s.containers.records[id]
		m := c.Config.GetMetadata()
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && m.GetName() == next.GetName() && m.GetAttempt() < next.GetAttempt() {
			s.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
		}
	}
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

// restored follows RestorePod, which makes a sandbox and its containers at
// once; the answer tells them apart by the names in their configs.
func (s *Store) restored(sent, resp proto.Message) {
	req, _ := sent.(*runtimeapi.RestorePodRequest)
	answer, _ := resp.(*runtimeapi.RestorePodResponse)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, restored := range answer.GetRestoredContainers() {
		for _, config := range req.GetContainerConfigs() {
			if config.GetMetadata().GetName() == restored.GetName() {
				s.addContainer(Container{ID: restored.GetContainerId(), PodID: cri.PodID(resp), Config: config})
			}
		}
	}
}
