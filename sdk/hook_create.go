package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// PreCreateContainer comes before a container is created.
type PreCreateContainer struct{ MutableContainer }

// SetEnv sets an environment variable. It replaces the last occurrence of the
// name and drops earlier ones; a new name comes last. It needs [CapEnv].
func (c *PreCreateContainer) SetEnv(name, value string) error {
	return setEntry("SetEnv", abi.Container, abi.ContainerEnv, name, value)
}

// DeleteEnv removes an environment variable, if it is there. It needs [CapEnv].
func (c *PreCreateContainer) DeleteEnv(name string) error {
	return deleteEntry("DeleteEnv", abi.Container, abi.ContainerEnv, name)
}

// SetCgroupParent sets the cgroup that the container's is made in: an absolute
// path, or a systemd slice. It needs [CapCgroupParent].
func (c *PreCreateContainer) SetCgroupParent(parent string) error {
	return setCgroupParent(parent)
}

// SetImage sets the image to run, as the runtime knows it. It needs [CapImage].
func (c *PreCreateContainer) SetImage(image string) error {
	return setText("SetImage", abi.Container, abi.ContainerImage, image)
}

// SetCommand replaces the entrypoint, with nothing by the image's. It needs [CapArgs].
func (c *PreCreateContainer) SetCommand(command ...string) error {
	return setList("SetCommand", abi.Container, abi.ContainerCommand, command)
}

// SetArgs replaces the arguments, with nothing by the image's. It needs [CapArgs].
func (c *PreCreateContainer) SetArgs(args ...string) error {
	return setList("SetArgs", abi.Container, abi.ContainerArgs, args)
}

// SetWorkingDir sets the directory that the container starts in. It needs [CapArgs].
func (c *PreCreateContainer) SetWorkingDir(dir string) error {
	return setText("SetWorkingDir", abi.Container, abi.ContainerWorkingDir, dir)
}

// AddMount adds a mount, in the place of one with the same container path. It
// needs [CapMounts].
func (c *PreCreateContainer) AddMount(m Mount) error {
	return addElement("AddMount", m.ContainerPath, abi.ContainerMounts, encode(m.members()))
}

// DeleteMount removes the mount of a container path, if it is there. It needs [CapMounts].
func (c *PreCreateContainer) DeleteMount(containerPath string) error {
	return deleteElement("DeleteMount", containerPath, abi.ContainerMounts)
}

// AddDevice adds a device, in the place of one with the same container path. It
// needs [CapDevices].
func (c *PreCreateContainer) AddDevice(d Device) error {
	return addElement("AddDevice", d.ContainerPath, abi.ContainerDevices, encode(d.members()))
}

// DeleteDevice removes the device of a container path, if it is there. It needs [CapDevices].
func (c *PreCreateContainer) DeleteDevice(containerPath string) error {
	return deleteElement("DeleteDevice", containerPath, abi.ContainerDevices)
}

// AddCDIDevice adds a CDI device by its fully qualified name, vendor.com/class=name.
// It needs [CapCDI].
func (c *PreCreateContainer) AddCDIDevice(name string) error {
	return addElement("AddCDIDevice", name, abi.ContainerCDIDevices, name)
}

// DeleteCDIDevice removes a CDI device, if it is there. It needs [CapCDI].
func (c *PreCreateContainer) DeleteCDIDevice(name string) error {
	return deleteElement("DeleteCDIDevice", name, abi.ContainerCDIDevices)
}

// SetRunAsUser sets the user that the container runs as. It needs [CapUser].
func (c *PreCreateContainer) SetRunAsUser(uid int64) error {
	return setInt64("SetRunAsUser", abi.Container, abi.ContainerRunAsUser, uid)
}

// SetRunAsGroup sets the group that the container runs as. It needs [CapUser].
func (c *PreCreateContainer) SetRunAsGroup(gid int64) error {
	return setInt64("SetRunAsGroup", abi.Container, abi.ContainerRunAsGroup, gid)
}

// SetRunAsUsername sets the user that the container runs as by a name, which the
// image knows. It needs [CapUser].
func (c *PreCreateContainer) SetRunAsUsername(name string) error {
	return setText("SetRunAsUsername", abi.Container, abi.ContainerRunAsUsername, name)
}

// AddSupplementalGroup adds a group of the container's first process. It needs [CapUser].
func (c *PreCreateContainer) AddSupplementalGroup(gid int64) error {
	group := FormatInt(gid)
	return addElement("AddSupplementalGroup", group, abi.ContainerSupplementalGroups, group)
}

// DeleteSupplementalGroup removes such a group, if it is there. It needs [CapUser].
func (c *PreCreateContainer) DeleteSupplementalGroup(gid int64) error {
	return deleteElement("DeleteSupplementalGroup", FormatInt(gid), abi.ContainerSupplementalGroups)
}
