package intercept

import (
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// propagations are CRI's, as plugins write them.
var propagations = map[runtimeapi.MountPropagation]string{
	runtimeapi.MountPropagation_PROPAGATION_PRIVATE:           "private",
	runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: "host_to_container",
	runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:     "bidirectional",
}

func mountRecord(m *runtimeapi.Mount) string {
	return record(abi.ContainerMounts, func(key string) string {
		switch key {
		case "container_path":
			return m.GetContainerPath()
		case "host_path":
			return m.GetHostPath()
		case "readonly":
			return truth(m.GetReadonly())
		case "propagation":
			return propagations[m.GetPropagation()]
		case "selinux_relabel":
			return truth(m.GetSelinuxRelabel())
		case "recursive_read_only":
			return truth(m.GetRecursiveReadOnly())
		}
		return ""
	})
}

func deviceRecord(d *runtimeapi.Device) string {
	return record(abi.ContainerDevices, func(key string) string {
		switch key {
		case "container_path":
			return d.GetContainerPath()
		case "host_path":
			return d.GetHostPath()
		case "permissions":
			return d.GetPermissions()
		}
		return ""
	})
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// takeMount makes m what the record says, or a new mount if there is none. What
// a record cannot say, such as mappings of ids, stays; an image stays unless there
// is a path of the host instead.
func takeMount(m *runtimeapi.Mount, text string) *runtimeapi.Mount {
	if m == nil {
		m = &runtimeapi.Mount{}
	}
	values := valuesOf(text)
	m.ContainerPath, m.HostPath = values["container_path"], values["host_path"]
	m.Readonly, m.SelinuxRelabel = values["readonly"] == "true", values["selinux_relabel"] == "true"
	m.RecursiveReadOnly = values["recursive_read_only"] == "true"
	m.Propagation = runtimeapi.MountPropagation_PROPAGATION_PRIVATE
	for propagation, name := range propagations {
		if values["propagation"] == name {
			m.Propagation = propagation
		}
	}
	if m.HostPath != "" {
		m.Image, m.ImageSubPath = nil, ""
	}
	return m
}

func takeDevice(d *runtimeapi.Device, text string) *runtimeapi.Device {
	if d == nil {
		d = &runtimeapi.Device{}
	}
	values := valuesOf(text)
	d.ContainerPath, d.HostPath, d.Permissions = values["container_path"], values["host_path"], values["permissions"]
	return d
}

// record encodes an element's keys and values.
func record(f abi.Field, value func(key string) string) string {
	for _, info := range abi.Records {
		if info.Object == abi.Container && info.Field == f {
			return string(abi.AppendRecord(nil, info.Keys, value))
		}
	}
	return ""
}

// valuesOf decodes an element, which was checked when the plugin made the change.
func valuesOf(text string) map[string]string {
	values := map[string]string{}
	abi.EachEntry(text, func(key, value string) bool {
		values[key] = value
		return true
	})
	return values
}
