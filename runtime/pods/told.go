package pods

import (
	"cmp"
	"errors"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// toldPod is what the backend told of a pod.
type toldPod struct {
	Pod                                                     // Config as it was at RunPodSandbox
	overhead, resources *runtimeapi.LinuxContainerResources // of the last update, nil without one
}

// over lays what was told over the record that the store has. That one's config
// is better: it has what a status cannot tell.
func (t toldPod) over(old Pod, known bool) Pod {
	p := t.Pod
	if known {
		p.Config, p.Asked, p.RuntimeHandler, p.Untold = old.Config, old.Asked, old.RuntimeHandler, old.Untold
	}
	p.Config = withPodResources(p.Config, t.overhead, t.resources)
	return p
}

// toldContainer is what the backend told of a container.
type toldContainer struct {
	Container                                     // Config as it was at CreateContainer
	now       *runtimeapi.LinuxContainerResources // as they are now, nil if not told
	pid       int                                 // 0 if it is not told

	ofKernel    *runtimeapi.LinuxContainerResources // in place of now, if that is not told
	kernelTells Parts                               // in ofKernel
}

// over lays what was told over the record that the store has, as for a pod.
func (t toldContainer) over(old Container, known bool) Container {
	c := t.Container
	if known {
		c.Config, c.CgroupParent, c.CgroupFiles, c.Untold = old.Config, old.CgroupParent, old.CgroupFiles, old.Untold
		c.CgroupsPath = cmp.Or(c.CgroupsPath, old.CgroupsPath)
	}
	c.Config = asOfNow(c.Config, t.now)
	return t.asKernelSays(c)
}

// asKernelSays puts what the kernel tells into what nobody else has told.
func (t toldContainer) asKernelSays(c Container) Container {
	if c.Untold&allResources != 0 && t.ofKernel != nil {
		c.Config = withResources(c.Config, t.ofKernel)
		c.Untold &^= t.kernelTells
	}
	return c
}

// readPodStatus understands the verbose status of containerd, which has the
// config, of CRI-O, which has only the runtime spec, and of others, which have neither.
func readPodStatus(resp *runtimeapi.PodSandboxStatusResponse) (toldPod, error) {
	st := resp.GetStatus()
	if st.GetId() == "" {
		return toldPod{}, errors.New("the status has no id")
	}
	info, err := parseInfo[podInfo](resp.GetInfo())
	if err != nil {
		return toldPod{}, err
	}
	t := toldPod{Pod: Pod{ID: st.GetId(), Config: info.Config, RuntimeHandler: st.GetRuntimeHandler(), State: st.GetState()}}
	t.overhead, t.resources = info.Overhead.GetLinux(), info.Resources.GetLinux()
	if t.Config == nil {
		t.Config, t.Untold = podConfigOf(st, &info.RuntimeSpec), info.RuntimeSpec.untoldOfPod()
	}
	if t.RuntimeHandler == "" {
		t.RuntimeHandler = info.RuntimeSpec.Annotations[crioRuntimeHandler]
	}
	return t, nil
}

// readContainerStatus is the same for containers.
func readContainerStatus(resp *runtimeapi.ContainerStatusResponse) (toldContainer, error) {
	st := resp.GetStatus()
	if st.GetId() == "" {
		return toldContainer{}, errors.New("the status has no id")
	}
	info, err := parseInfo[containerInfo](resp.GetInfo())
	if err != nil {
		return toldContainer{}, err
	}
	t := toldContainer{now: st.GetResources().GetLinux(), pid: info.PID}
	if t.now == nil {
		t.now = info.RuntimeSpec.resources()
	}
	t.Container = Container{ID: st.GetId(), PodID: info.SandboxID, State: st.GetState(), Config: info.config()}
	if l := info.RuntimeSpec.Linux; l != nil {
		t.CgroupsPath = l.CgroupsPath
	}
	if t.Config == nil {
		t.Config, t.Untold = containerConfigOf(st, &info.RuntimeSpec, t.now), info.untold()
		if info.Privileged {
			t.Config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Privileged: true}
		}
		if t.now != nil {
			t.Untold &^= allResources
		}
	}
	return t, nil
}
