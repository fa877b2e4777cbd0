package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Mount is a directory or file of the host that a container sees.
type Mount struct {
	ContainerPath     string
	HostPath          string
	Readonly          bool
	Propagation       string // private, which is the default, host_to_container or bidirectional
	SELinuxRelabel    bool
	RecursiveReadOnly bool
}

func (m Mount) record() string {
	r := record{}
	r.add("container_path", m.ContainerPath)
	r.add("host_path", m.HostPath)
	r.flag("readonly", m.Readonly)
	r.add("propagation", m.Propagation)
	r.flag("selinux_relabel", m.SELinuxRelabel)
	r.flag("recursive_read_only", m.RecursiveReadOnly)
	return r.String()
}

func (m *Mount) set(key, value string) {
	switch key {
	case "container_path":
		m.ContainerPath = value
	case "host_path":
		m.HostPath = value
	case "readonly":
		m.Readonly = value == "true"
	case "propagation":
		m.Propagation = value
	case "selinux_relabel":
		m.SELinuxRelabel = value == "true"
	case "recursive_read_only":
		m.RecursiveReadOnly = value == "true"
	}
}

// Device is a device of the host that a container may use.
type Device struct {
	ContainerPath string
	HostPath      string
	Permissions   string // of r, w and m (mknod)
}

func (d Device) record() string {
	r := record{}
	r.add("container_path", d.ContainerPath)
	r.add("host_path", d.HostPath)
	r.add("permissions", d.Permissions)
	return r.String()
}

func (d *Device) set(key, value string) {
	switch key {
	case "container_path":
		d.ContainerPath = value
	case "host_path":
		d.HostPath = value
	case "permissions":
		d.Permissions = value
	}
}

// record is an element of a set, as entries.
type record struct {
	entries []byte
	count   byte
}

func (r *record) add(key, value string) {
	if value != "" {
		r.entries = abi.AppendText(abi.AppendText(r.entries, key), value)
		r.count++
	}
}

func (r *record) flag(key string, set bool) {
	if set {
		r.add(key, "true")
	}
}

func (r *record) String() string { return string([]byte{r.count, 0, 0, 0}) + string(r.entries) }

func mounts(o abi.Object) []Mount {
	var list []Mount
	for _, element := range readList("Mounts", o, abi.ContainerMounts) {
		var m Mount
		abi.EachEntry(element, func(k, v string) bool { m.set(k, v); return true })
		list = append(list, m)
	}
	return list
}

func devices(o abi.Object) []Device {
	var list []Device
	for _, element := range readList("Devices", o, abi.ContainerDevices) {
		var d Device
		abi.EachEntry(element, func(k, v string) bool { d.set(k, v); return true })
		list = append(list, d)
	}
	return list
}
