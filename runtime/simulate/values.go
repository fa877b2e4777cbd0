package simulate

import (
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// set gives an object of this kind the values of these fields, which package fixture has
// checked. Fields that its messages do not have are left out.
func set(o crifield.Object, kind abi.Object, fields fixture.Fields) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if info, ok := abi.FieldByName(kind, name); ok {
			for _, c := range assignments(info, fields.Value(info)) {
				o.Set(&c)
			}
		}
	}
}

// assignments are the changes that give a field this value, of those that fixture.Fields
// returns.
func assignments(info abi.FieldInfo, v any) (all []plugin.Change) {
	switch v := v.(type) {
	case int64:
		all = append(all, plugin.Change{Op: plugin.SetInt64, Int: v})
	case string:
		all = append(all, plugin.Change{Op: plugin.SetText, Text: v})
	case map[string]string:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, plugin.Change{Op: plugin.SetEntry, Key: key, Text: v[key]})
		}
	case []string:
		if info.Type == abi.List {
			return []plugin.Change{{Op: plugin.SetList, Field: info.Field, Text: string(abi.AppendList(nil, v))}}
		}
		for _, element := range v {
			all = append(all, plugin.Change{Op: plugin.AddElement, Key: element, Text: element})
		}
	}
	for i := range all {
		all[i].Field = info.Field
	}
	return all
}

// newPod returns a pod with these fields.
func newPod(fields fixture.Fields) *crifield.Pod {
	p := &crifield.Pod{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}}
	set(crifield.Object{Pod: p}, abi.Pod, fields)
	p.Config.Linux.Overhead, p.Config.Linux.Resources = p.Overhead.Now, p.Resources.Now
	return p
}

// newContainer is newPod for a container.
func newContainer(fields fixture.Fields) *crifield.Container {
	c := &crifield.Container{Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{},
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}}
	set(crifield.Object{Container: c}, abi.Container, fields)
	c.Config.Annotations, c.Config.Linux.Resources = c.Annotations, c.Resources.Now
	if user, given := fields["run_as_user"].(int64); given { // which a name has replaced, if there is one too
		c.Config.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: user}
	}
	return c
}
