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
	if m == nil || m.Effect == cri.Nothing {
		return
	}
	ofPod, pod, container := m.Object == abi.Pod, cri.PodID(sent), cri.ContainerID(sent)
	s.mu.Lock()
	defer s.mu.Unlock()
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
			s.containers.edit(container, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
		}
	case cri.Removes:
		if ofPod {
			s.removePod(pod)
		} else {
			s.removeContainer(container)
		}
	case cri.Updates:
		if ofPod {
			s.updatedPod(pod, m.Carries(sent))
		} else {
			// What the request sets changes. So does oom_score_adj, which no runtime applies there: it is what kubelet wants now,
			// and tells the memory that the container requests.
			carried := m.Carries(sent)
			s.containers.edit(container, func(c Container) Container {
				c.Config = withAnnotations(withResources(c.Config, *carried.Resources), *carried.Annotations)
				return c
			})
		}
	}
}

func (r *records) madePod(requested, sent cri.Carried, unchanged bool, resp proto.Message) {
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
	r.pods.put(p.ID, p)
}

// stoppedPod follows StopPodSandbox, which ends the containers too.
func (r *records) stoppedPod(id string) {
	id, _, _ = r.pods.find(id)
	r.pods.edit(id, func(p Pod) Pod {
		p.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		return p
	})
	for c := range r.members[id] {
		r.containers.edit(c, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
	}
}

// startedContainer follows StartContainer. Its pod is ready then: in Docker a container that is its own
// pod may start after it was stopped.
func (r *records) startedContainer(id string) {
	r.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_RUNNING))
	_, c, _ := r.containers.find(id)
	if p, known := r.pods.records[c.PodID]; known && p.State == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
		r.pods.edit(c.PodID, func(p Pod) Pod {
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

// updatedPod follows UpdatePodSandboxResources, whose messages are whole sums:
// what is given replaces what was.
func (r *records) updatedPod(id string, sent cri.Carried) {
	r.pods.edit(id, func(p Pod) Pod {
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

func (r *records) createdContainer(requested, sent cri.Carried, podID, id string) {
	// The pod may be given by a prefix of its ID.
	podID, pod, _ := r.pods.find(podID)
	if config := *requested.Pod; pod.Unreported != 0 && config.GetMetadata() != nil {
		r.pods.edit(podID, func(p Pod) Pod { return completedByKubelet(p, config) })
	}
	r.endEarlier(podID, (*sent.Container).GetMetadata())
	r.addContainer(Container{
		ID: id, PodID: podID, Config: *sent.Container,
		CgroupParent: (*sent.Pod).GetLinux().GetCgroupParent(),
	})
}

// endEarlier notes that the earlier attempts of a container have ended: kubelet makes the next one
// only then, and no call shows that a container ends by itself.
func (r *records) endEarlier(podID string, next *runtimeapi.ContainerMetadata) {
	if next.GetAttempt() == 0 {
		return
	}
	for id := range r.members[podID] {
		c := r.containers.records[id]
		m := c.Config.GetMetadata()
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING && m.GetName() == next.GetName() && m.GetAttempt() < next.GetAttempt() {
			r.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
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

// addContainer puts a container that was just made.
func (r *records) addContainer(c Container) {
	if c.ID == "" {
		return
	}
	if c.Config == nil {
		c.Config = &runtimeapi.ContainerConfig{}
	}
	c.State = runtimeapi.ContainerState_CONTAINER_CREATED
	r.containers.put(c.ID, c)
	r.enlist(c)
}

// restored follows RestorePod, which makes a sandbox and its containers at
// once; the answer tells them apart by the names in their configs.
func (r *records) restored(sent, resp proto.Message) {
	req, _ := sent.(*runtimeapi.RestorePodRequest)
	answer, _ := resp.(*runtimeapi.RestorePodResponse)
	for _, restored := range answer.GetRestoredContainers() {
		for _, config := range req.GetContainerConfigs() {
			if config.GetMetadata().GetName() == restored.GetName() {
				r.addContainer(Container{ID: restored.GetContainerId(), PodID: cri.PodID(resp), Config: config})
			}
		}
	}
}
