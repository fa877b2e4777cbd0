package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Container reads a container. Its methods return "" or 0 for what the
// container does not have. A Container is valid while the handler that got it runs.
type Container struct{ from abi.Object } // counted from the container of the event

func (c Container) object() abi.Object { return abi.Container + c.from }

// Pod returns the pod that the container is in.
func (c Container) Pod() Pod {
	if c.from == 0 {
		return Pod{}
	}
	pod, _ := FindPodByID(readText("Pod", c.object(), abi.ContainerPodID))
	return pod.Pod
}

// Label returns the value of a label and whether the container has it.
func (c Container) Label(key string) (string, bool) {
	return readEntry("Label", c.object(), abi.ContainerLabels, key)
}

// Labels ranges over the labels, sorted by key.
func (c Container) Labels() Entries { return readEntries("Labels", c.object(), abi.ContainerLabels) }

// Annotation returns the value of an annotation and whether the container has it.
func (c Container) Annotation(key string) (string, bool) {
	return readEntry("Annotation", c.object(), abi.ContainerAnnotations, key)
}

// Annotations ranges over the annotations, sorted by key.
func (c Container) Annotations() Entries {
	return readEntries("Annotations", c.object(), abi.ContainerAnnotations)
}

// Env returns the value of an environment variable, the last where a name
// occurs twice, and whether the container has it. It may be a secret, and needs [CapEnv].
func (c Container) Env(name string) (string, bool) {
	return readEntry("Env", c.object(), abi.ContainerEnv, name)
}

// Envs ranges over the environment variables in the order of the request, which
// may repeat a name. They may be secrets, and need [CapEnv].
func (c Container) Envs() Entries { return readEntries("Envs", c.object(), abi.ContainerEnv) }

// Mounts returns the mounts that the request asks for.
func (c Container) Mounts() []Mount {
	return readRecords[Mount]("Mounts", c.object(), abi.ContainerMounts)
}

// ImageVolume returns the image that is mounted at a path of the container, as its user wrote it, and whether there is one.
func (c Container) ImageVolume(containerPath string) (string, bool) {
	return readEntry("ImageVolume", c.object(), abi.ContainerImageVolumes, containerPath)
}

// ImageVolumes ranges over the images that are mounted, by their paths in the container. An image of which nobody told
// the name is "".
func (c Container) ImageVolumes() Entries {
	return readEntries("ImageVolumes", c.object(), abi.ContainerImageVolumes)
}

// Devices returns the devices that the request asks for.
func (c Container) Devices() []Device {
	return readRecords[Device]("Devices", c.object(), abi.ContainerDevices)
}

// CDIDevices returns the fully qualified names of CDI devices.
func (c Container) CDIDevices() []string {
	return readList("CDIDevices", c.object(), abi.ContainerCDIDevices)
}

// RunAsUser returns the user and whether the request says.
func (c Container) RunAsUser() (uid int64, ok bool) {
	return lookupInt64("RunAsUser", c.object(), abi.ContainerRunAsUser)
}

// RunAsGroup returns the group and whether the request says.
func (c Container) RunAsGroup() (gid int64, ok bool) {
	return lookupInt64("RunAsGroup", c.object(), abi.ContainerRunAsGroup)
}

// SupplementalGroups returns the further groups of the first process, in decimal.
func (c Container) SupplementalGroups() []string {
	return readList("SupplementalGroups", c.object(), abi.ContainerSupplementalGroups)
}

// ReadCgroup reads a file of the container's cgroup by its v2 name, such as cpu.stat. It needs
// [CapCgroupRead]. Without a cgroup the error is [ErrNotFound]; without the file it is [ErrUnsupported].
func (c Container) ReadCgroup(file string) (string, error) { return readCgroup(c.object(), file) }

// Resources returns the container's resources.
func (c Container) Resources() Resources { return Resources{c.object(), abi.Resources} }

// MutableContainer is the container of a request that is on its way to the
// runtime, so that a plugin can still change it.
type MutableContainer struct {
	Container
	containerFiles
	refusal
}

// Resources returns the container's resources, as they will be when the request is
// carried out.
func (c *MutableContainer) Resources() MutableResources {
	return MutableResources{c.Container.Resources()}
}

// SetAnnotation sets an annotation of the container. Keys under io.kubernetes. are denied.
func (c *MutableContainer) SetAnnotation(key, value string) error {
	return setEntry("SetAnnotation", abi.Container, abi.ContainerAnnotations, key, value)
}

// DeleteAnnotation removes an annotation of the container, if it is there.
func (c *MutableContainer) DeleteAnnotation(key string) error {
	return deleteEntry("DeleteAnnotation", abi.Container, abi.ContainerAnnotations, key)
}
