package crifield

import (
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

var (
	mounts     = element[*runtimeapi.Mount]{(*runtimeapi.Mount).GetContainerPath, mountRecord, takeMount}
	devices    = element[*runtimeapi.Device]{(*runtimeapi.Device).GetContainerPath, deviceRecord, takeDevice}
	cdiDevices = element[*runtimeapi.CDIDevice]{(*runtimeapi.CDIDevice).GetName, (*runtimeapi.CDIDevice).GetName, takeCDIDevice}
	groups     = element[int64]{decimal, decimal, takeGroup}
)

func takeCDIDevice(_ *runtimeapi.CDIDevice, name string) *runtimeapi.CDIDevice {
	return &runtimeapi.CDIDevice{Name: name}
}

func takeGroup(_ int64, text string) int64 {
	group, _ := strconv.ParseInt(text, 10, 64) // checked when the plugin made the change
	return group
}

func mountRecord(m *runtimeapi.Mount) string {
	return record(abi.ContainerMounts, map[string]string{
		"container_path": m.GetContainerPath(), "host_path": m.GetHostPath(),
		"readonly": truth(m.GetReadonly()), "selinux_relabel": truth(m.GetSelinuxRelabel()), "recursive_read_only": truth(m.GetRecursiveReadOnly()),
		"propagation": propagations.of(int32(m.GetPropagation())),
	})
}

func deviceRecord(d *runtimeapi.Device) string {
	return record(abi.ContainerDevices, map[string]string{
		"container_path": d.GetContainerPath(), "host_path": d.GetHostPath(), "permissions": d.GetPermissions(),
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
	m.Propagation = runtimeapi.MountPropagation(propagations.value(values["propagation"]))
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

// record encodes an element of a container's set.
func record(f abi.Field, values map[string]string) string {
	for _, info := range abi.Records {
		if info.Object == abi.Container && info.Field == f {
			return string(abi.AppendRecord(nil, info.Keys, func(key string) string { return values[key] }))
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

func variable(v *runtimeapi.KeyValue) (name, text string) { return v.GetKey(), string(v.GetValue()) }

// setVariable replaces the last variable of the name and removes earlier ones, so
// that the order of the others stays and the new value is the one that counts.
func setVariable(vars []*runtimeapi.KeyValue, c *plugin.Change) []*runtimeapi.KeyValue {
	named := func(v *runtimeapi.KeyValue) bool { return v.GetKey() == c.Key }
	if c.Op == plugin.DeleteEntry {
		return slices.DeleteFunc(vars, named)
	}
	last := -1
	for i, v := range vars {
		if named(v) {
			last = i
		}
	}
	if last < 0 {
		return append(vars, &runtimeapi.KeyValue{Key: c.Key, Value: []byte(c.Text)})
	}
	kept := vars[last]
	kept.Value = []byte(c.Text)
	return slices.DeleteFunc(vars, func(v *runtimeapi.KeyValue) bool { return named(v) && v != kept })
}

func hugepage(l *runtimeapi.HugepageLimit) (size, bytes string) {
	return l.GetPageSize(), strconv.FormatUint(l.GetLimit(), 10)
}

func setHugepage(limits []*runtimeapi.HugepageLimit, c *plugin.Change) []*runtimeapi.HugepageLimit {
	named := func(l *runtimeapi.HugepageLimit) bool { return l.GetPageSize() == c.Key }
	if c.Op == plugin.DeleteEntry {
		return slices.DeleteFunc(limits, named)
	}
	limit, _ := strconv.ParseUint(c.Text, 10, 64) // checked when the plugin made the change
	if i := slices.IndexFunc(limits, named); i >= 0 {
		limits[i].Limit = limit
		return limits
	}
	return append(limits, &runtimeapi.HugepageLimit{PageSize: c.Key, Limit: limit})
}
