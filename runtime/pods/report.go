package pods

import (
	"cmp"
	"errors"
	"maps"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// reportedPod is a pod as the backend reports it.
type reportedPod struct {
	Pod                                                     // Config as it was at RunPodSandbox
	overhead, resources *runtimeapi.LinuxContainerResources // of the last update, nil without one
}

// mergeInto returns the record with what was reported. The record's own config is better:
// it has what a status leaves out.
func (t reportedPod) mergeInto(old Pod, known bool) Pod {
	p := t.Pod
	if known && !old.ByListAlone() {
		p.Config, p.Requested, p.Unchanged = old.Config, old.Requested, old.Unchanged
		p.RuntimeHandler, p.Unreported = old.RuntimeHandler, old.Unreported
	}
	p.Config = withPodResources(p.Config, t.overhead, t.resources)
	return p
}

// reportedContainer is a container as the backend reports it.
type reportedContainer struct {
	Container                                     // Config as it was at CreateContainer
	now       *runtimeapi.LinuxContainerResources // as they are now, nil if not reported
	pid       int                                 // 0 if it is not reported

	ofKernel    *runtimeapi.LinuxContainerResources // in place of now, if that is not reported
	kernelParts Parts                               // of ofKernel
}

// mergeInto returns the record with what was reported, as for a pod.
func (t reportedContainer) mergeInto(old Container, known bool) Container {
	c := t.Container
	if known && !old.ByListAlone() {
		c.Config, c.CgroupParent, c.Unreported = old.Config, old.CgroupParent, old.Unreported
		c.CgroupsPath = cmp.Or(c.CgroupsPath, old.CgroupsPath)
	}
	c.Config = asOfNow(c.Config, t.now)
	return t.withKernel(c)
}

// withKernel fills what was not reported with the kernel's values.
func (t reportedContainer) withKernel(c Container) Container {
	if c.Unreported&allResources != 0 && t.ofKernel != nil {
		c.Config = withResources(c.Config, t.ofKernel)
		c.Unreported &^= t.kernelParts
	}
	return c
}

// readPodStatus understands the verbose status of containerd, which has the
// config, of CRI-O, which has only the runtime spec, and of others, which have neither.
func readPodStatus(resp *runtimeapi.PodSandboxStatusResponse) (reportedPod, error) {
	st := resp.GetStatus()
	if st.GetId() == "" {
		return reportedPod{}, errors.New("the status has no id")
	}
	info, err := parseInfo[podInfo](resp.GetInfo())
	if err != nil {
		return reportedPod{}, err
	}
	t := reportedPod{Pod: Pod{ID: st.GetId(), Config: info.Config, RuntimeHandler: st.GetRuntimeHandler(), State: st.GetState()}}
	t.overhead, t.resources = info.Overhead.GetLinux(), info.Resources.GetLinux()
	spec := &info.RuntimeSpec
	if t.RuntimeHandler == "" {
		t.RuntimeHandler = cmp.Or(spec.annotated(func(r dialect.Runtime) []string { return r.RuntimeHandler })...)
	}
	if t.Config != nil {
		return t, nil
	}

	// The config is made of what the status and the spec tell.
	t.Config = &runtimeapi.PodSandboxConfig{
		Metadata:    st.GetMetadata(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: cmp.Or(spec.annotated(func(r dialect.Runtime) []string { return r.CgroupParent })...),
			Overhead:     resourcesIn(spec.annotated(func(r dialect.Runtime) []string { return r.PodOverhead })),
			Resources:    resourcesIn(spec.annotated(func(r dialect.Runtime) []string { return r.PodResources })),
		},
	}
	for _, r := range dialect.Runtimes {
		maps.DeleteFunc(t.Config.Labels, func(label, value string) bool { return value != "" && r.PodLabels[label] == value })
	}
	opts := st.GetLinux().GetNamespaces().GetOptions()
	if opts != nil {
		t.Config.Linux.SecurityContext = &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: opts}
	}
	if opts.GetNetwork() != runtimeapi.NamespaceMode_NODE { // the host's name is no pod's
		t.Config.Hostname = spec.Hostname
	}
	if spec.Linux != nil {
		t.Config.Linux.Sysctls = spec.Linux.Sysctl
	}
	t.Unreported = notInPodSpec
	if spec.Annotations == nil { // there is no spec
		t.Unreported = allOfPod
	}
	return t, nil
}

// readContainerStatus is the same for containers.
func readContainerStatus(resp *runtimeapi.ContainerStatusResponse) (reportedContainer, error) {
	st := resp.GetStatus()
	if st.GetId() == "" {
		return reportedContainer{}, errors.New("the status has no id")
	}
	info, err := parseInfo[containerInfo](resp.GetInfo())
	if err != nil {
		return reportedContainer{}, err
	}
	spec := &info.RuntimeSpec
	t := reportedContainer{now: st.GetResources().GetLinux(), pid: info.PID}
	if t.now == nil {
		t.now = spec.resources()
	}
	t.Container = Container{ID: st.GetId(), PodID: info.SandboxID, State: st.GetState(), Config: info.config()}
	if spec.Linux != nil {
		t.CgroupsPath = spec.Linux.CgroupsPath
	}
	if t.Config != nil {
		return t, nil
	}

	// The config is made of what the status and the spec tell. CRI-O keeps in an annotation the image's name that the request
	// had, and tells in the status any name that the image has. Others tell one name, of whichever they know.
	names := append(spec.annotated(func(r dialect.Runtime) []string { return r.Image }), st.GetImage().GetImage())
	t.Config = &runtimeapi.ContainerConfig{
		Metadata:    st.GetMetadata(),
		Image:       imageReported(st.GetImageId(), cmp.Or(names...)),
		Mounts:      st.GetMounts(),
		Labels:      st.GetLabels(),
		Annotations: st.GetAnnotations(),
		Linux:       &runtimeapi.LinuxContainerConfig{},
	}
	t.Unreported = allOfContainer
	if p := spec.Process; p != nil { // a spec does not tell command from args, nor env from the image's variables
		t.Unreported = notInSpec
		t.Config.Command, t.Config.WorkingDir = p.Args, p.Cwd
		for _, kv := range p.Env {
			k, v, _ := strings.Cut(kv, "=")
			t.Config.Envs = append(t.Config.Envs, &runtimeapi.KeyValue{Key: k, Value: []byte(v)})
		}
	}
	if adj := t.now.GetOomScoreAdj(); adj != 0 { // the one value that asOfNow does not take over
		t.Config.Linux.Resources = &runtimeapi.LinuxContainerResources{OomScoreAdj: adj}
	}
	if info.Privileged {
		t.Config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Privileged: true}
	}
	if t.now != nil {
		t.Unreported &^= allResources
	}
	return t, nil
}
