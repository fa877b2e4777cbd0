package intercept

import (
	"slices"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// setConfig changes what a container that is being made is to be.
func setConfig(config *runtimeapi.ContainerConfig, c *plugin.Change) {
	switch c.Field {
	case abi.ContainerEnv:
		setEnv(&config.Envs, c)
	case abi.ContainerImage:
		if config.Image == nil {
			config.Image = &runtimeapi.ImageSpec{}
		}
		setImage(config.Image, c.Text)
	case abi.ContainerCommand:
		config.Command = c.Elements()
	case abi.ContainerArgs:
		config.Args = c.Elements()
	case abi.ContainerWorkingDir:
		config.WorkingDir = c.Text
	case abi.ContainerMounts:
		config.Mounts = setElement(config.Mounts, c, (*runtimeapi.Mount).GetContainerPath, takeMount)
	case abi.ContainerDevices:
		config.Devices = setElement(config.Devices, c, (*runtimeapi.Device).GetContainerPath, takeDevice)
	case abi.ContainerCDIDevices:
		config.CDIDevices = setElement(config.CDIDevices, c, (*runtimeapi.CDIDevice).GetName, takeCDIDevice)
	default:
		setUser(config, c)
	}
}

func setUser(config *runtimeapi.ContainerConfig, c *plugin.Change) {
	if config.Linux == nil {
		config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	if config.Linux.SecurityContext == nil {
		config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{}
	}
	switch s := config.Linux.SecurityContext; c.Field {
	case abi.ContainerRunAsUser: // CRI takes one of the two
		s.RunAsUser, s.RunAsUsername = &runtimeapi.Int64Value{Value: c.Int}, ""
	case abi.ContainerRunAsUsername:
		s.RunAsUser, s.RunAsUsername = nil, c.Text
	case abi.ContainerRunAsGroup:
		s.RunAsGroup = &runtimeapi.Int64Value{Value: c.Int}
	case abi.ContainerSupplementalGroups:
		s.SupplementalGroups = setElement(s.SupplementalGroups, c, decimal, takeGroup)
	}
}

// setElement adds an element to a set, or removes it. One that is there already
// stays in its place and is changed by take, which gets the zero T otherwise.
func setElement[T any](set []T, c *plugin.Change, key func(T) string, take func(T, string) T) []T {
	named := func(name string) func(T) bool { return func(v T) bool { return key(v) == name } }
	if c.Op == plugin.DeleteElement {
		return slices.DeleteFunc(set, named(c.Key))
	}
	var none T
	added := take(none, c.Text)
	i := slices.IndexFunc(set, named(key(added)))
	if i < 0 {
		return append(set, added)
	}
	set[i] = take(set[i], c.Text)
	return set
}

func takeCDIDevice(_ *runtimeapi.CDIDevice, name string) *runtimeapi.CDIDevice {
	return &runtimeapi.CDIDevice{Name: name}
}

func takeGroup(_ int64, text string) int64 {
	group, _ := strconv.ParseInt(text, 10, 64) // checked when the plugin made the change
	return group
}

// setEnv replaces the last variable of the name and removes earlier ones, so
// that the order of the others stays and the new value is the one that counts.
func setEnv(vars *[]*runtimeapi.KeyValue, c *plugin.Change) {
	last := -1
	for i, v := range *vars {
		if v.GetKey() == c.Key {
			last = i
		}
	}
	if c.Op == plugin.SetEntry && last < 0 {
		*vars = append(*vars, &runtimeapi.KeyValue{Key: c.Key, Value: []byte(c.Text)})
		return
	}
	if c.Op == plugin.SetEntry {
		(*vars)[last].Value = []byte(c.Text)
	}
	kept := (*vars)[:0]
	for i, v := range *vars {
		if v.GetKey() != c.Key || i == last && c.Op == plugin.SetEntry {
			kept = append(kept, v)
		}
	}
	*vars = kept
}
