package pods

import (
	"maps"

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
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Object == abi.Pod {
		s.observePod(m, requested, sent, resp, unchanged)
	} else {
		s.observeContainer(m, requested, sent, resp)
	}
}

func (r *records) observePod(m *cri.Method, requested, sent, resp proto.Message, unchanged bool) {
	switch id := cri.PodID(sent); m.Effect {
	case cri.Makes:
		carried := m.Carries(sent)
		p := Pod{
			ID: cri.PodID(resp), Config: *carried.Pod, Requested: *m.Carries(requested).Pod, Unchanged: unchanged,
			RuntimeHandler: *carried.RuntimeHandler, State: runtimeapi.PodSandboxState_SANDBOX_READY,
		}
		if p.Config == nil {
			p.Config = &runtimeapi.PodSandboxConfig{}
		}
		if p.ID != "" {
			r.pods.put(p.ID, p)
		}
		r.restored(sent, resp)
	case cri.Stops: // which ends the containers too
		id, _, _ = r.pods.find(id)
		r.pods.edit(id, func(p Pod) Pod {
			p.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
			return p
		})
		for c := range r.members[id] {
			r.containers.edit(c, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
		}
	case cri.Removes:
		r.removePod(id)
	case cri.Updates: // with whole sums: what is given replaces what was
		carried := m.Carries(sent)
		r.pods.edit(id, func(p Pod) Pod {
			p.Config = withPodResources(p.Config, *carried.Overhead, *carried.Resources)
			if *carried.Overhead != nil {
				p.Unreported &^= PodOverhead
			}
			if *carried.Resources != nil {
				p.Unreported &^= allResources
			}
			return p
		})
	}
}

func (r *records) observeContainer(m *cri.Method, requested, sent, resp proto.Message) {
	switch id := cri.ContainerID(sent); m.Effect {
	case cri.Makes:
		carried := m.Carries(sent)
		podID, pod, _ := r.pods.find(cri.PodID(sent)) // which may be given by a prefix
		if config := *m.Carries(requested).Pod; pod.Unreported != 0 && config.GetMetadata() != nil {
			r.pods.edit(podID, func(p Pod) Pod { return completedByKubelet(p, config) })
		}
		// The earlier attempts of the container have ended: kubelet makes the next one only then, and no call shows that a
		// container ends by itself.
		next := (*carried.Container).GetMetadata()
		for earlier := range r.members[podID] {
			c := r.containers.records[earlier]
			is, running := c.Config.GetMetadata(), c.State == runtimeapi.ContainerState_CONTAINER_RUNNING
			if running && is.GetName() == next.GetName() && is.GetAttempt() < next.GetAttempt() {
				r.containers.edit(earlier, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
			}
		}
		r.addContainer(Container{
			ID: cri.ContainerID(resp), PodID: podID, Config: *carried.Container,
			CgroupParent: (*carried.Pod).GetLinux().GetCgroupParent(),
		})
	case cri.Starts: // its pod is ready then: in Docker a container that is its own pod may start after it was stopped
		r.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_RUNNING))
		_, c, _ := r.containers.find(id)
		if p, known := r.pods.records[c.PodID]; known && p.State == runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			r.pods.edit(c.PodID, func(p Pod) Pod {
				p.State = runtimeapi.PodSandboxState_SANDBOX_READY
				return p
			})
		}
	case cri.Stops:
		r.containers.edit(id, inState(runtimeapi.ContainerState_CONTAINER_EXITED))
	case cri.Removes:
		r.removeContainer(id)
	case cri.Updates:
		// What the request sets changes. So does oom_score_adj, which no runtime applies there: it is what kubelet wants now,
		// and tells the memory that the container requests.
		carried := m.Carries(sent)
		r.containers.edit(id, func(c Container) Container {
			c.Config = withResources(c.Config, *carried.Resources)
			if over := *carried.Annotations; len(over) > 0 {
				c.Config = proto.CloneOf(c.Config)
				if c.Config.Annotations == nil {
					c.Config.Annotations = map[string]string{}
				}
				maps.Copy(c.Config.Annotations, over)
			}
			return c
		})
	}
}

func inState(state runtimeapi.ContainerState) func(Container) Container {
	return func(c Container) Container {
		c.State = state
		return c
	}
}

// completedByKubelet takes the config that kubelet sends with each container for what nobody
// reported of the pod. Labels, annotations and a cgroup parent that were reported stay: a plugin may have set them.
func completedByKubelet(p Pod, config *runtimeapi.PodSandboxConfig) Pod {
	config = proto.CloneOf(config)
	config.Labels, config.Annotations = p.Config.GetLabels(), p.Config.GetAnnotations()
	if parent := p.Config.GetLinux().GetCgroupParent(); parent != "" {
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
