package docker

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// containerConfig is a container as CRI has it.
func containerConfig(name string, c *container, k kind) *runtimeapi.ContainerConfig {
	labels, annotations := split(c.Labels, k.prefix())
	h, n := &c.HostConfig, namesOf(name, c.Labels, k)
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: n.container, Attempt: n.attempt},
		Image:    imageOf(c.Image),
		Command:  c.Entrypoint, Args: c.Cmd, WorkingDir: c.WorkingDir, Envs: environment(c.Env), Labels: labels, Annotations: annotations,
		LogPath: c.Labels[logPathLabel], Stdin: c.OpenStdin, StdinOnce: c.StdinOnce, Tty: c.Tty,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: h.cri(),
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				Privileged: h.Privileged, ReadonlyRootfs: h.ReadonlyRootfs,
				Capabilities: &runtimeapi.Capability{AddCapabilities: h.CapAdd, DropCapabilities: h.CapDrop},
			},
		},
	}
	config.Mounts = h.mounts()
	for _, d := range h.Devices {
		config.Devices = append(config.Devices, &runtimeapi.Device{
			HostPath: d.PathOnHost, ContainerPath: d.PathInContainer, Permissions: d.CgroupPermissions,
		})
	}
	setUser(config.Linux.SecurityContext, c.User, h.GroupAdd)
	setOptions(config.Linux.SecurityContext, h.SecurityOpt)
	return config
}

// imageOf is an image as a request names it. dockershim gives the id that Docker has told, and nobody's name.
func imageOf(image string) *runtimeapi.ImageSpec {
	if pods.IsImageID(image) {
		return &runtimeapi.ImageSpec{Image: image}
	}
	return &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}
}

// setOptions reads Docker's options of security, each NAME=VALUE or NAME:VALUE. The text of a seccomp profile may stand in
// the place of its file's name, and is left out.
func setOptions(s *runtimeapi.LinuxContainerSecurityContext, options []string) {
	for _, option := range options {
		name, value := option, ""
		if i := strings.IndexAny(option, "=:"); i >= 0 {
			name, value = option[:i], option[i+1:]
		}
		switch name {
		case "no-new-privileges":
			s.NoNewPrivs = value != "false"
		case "seccomp":
			if strings.HasPrefix(strings.TrimSpace(value), "{") {
				value = ""
			}
			s.Seccomp = profileOf(value, "builtin")
		case "apparmor":
			s.Apparmor = profileOf(value, "docker-default")
		}
	}
}

// profileOf is a profile, of which Docker has a name for its own.
func profileOf(name, own string) *runtimeapi.SecurityProfile {
	switch name {
	case own:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	case "unconfined":
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: name}
}

// ports are the ports of the node that lead to a container, in the order of its own.
func (h *hostConfig) ports() (all []*runtimeapi.PortMapping) {
	for _, inside := range slices.Sorted(maps.Keys(h.PortBindings)) {
		for _, b := range h.PortBindings[inside] {
			number, protocol, _ := strings.Cut(inside, "/")
			all = append(all, &runtimeapi.PortMapping{
				Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[strings.ToUpper(protocol)]),
				ContainerPort: portOf(number), HostPort: portOf(b.HostPort), HostIp: b.HostIp,
			})
		}
	}
	return all
}

// portOf is 0 for a text that is no port.
func portOf(text string) int32 {
	n, _ := strconv.ParseUint(text, 10, 16)
	return int32(n)
}

// environment leaves out what is not NAME=VALUE: with a name alone Docker removes a variable of
// the image.
func environment(lines []string) (all []*runtimeapi.KeyValue) {
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok {
			all = append(all, &runtimeapi.KeyValue{Key: name, Value: []byte(value)})
		}
	}
	return all
}

// setUser reads USER[:GROUP], each a number or a name, and further groups.
func setUser(s *runtimeapi.LinuxContainerSecurityContext, user string, groups []string) {
	name, group, _ := strings.Cut(user, ":")
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		s.RunAsUser = &runtimeapi.Int64Value{Value: id}
	} else {
		s.RunAsUsername = name
	}
	if id, err := strconv.ParseInt(group, 10, 64); err == nil {
		s.RunAsGroup = &runtimeapi.Int64Value{Value: id}
	}
	for _, g := range groups {
		if id, err := strconv.ParseInt(g, 10, 64); err == nil {
			s.SupplementalGroups = append(s.SupplementalGroups, id)
		}
	}
}

// userOf writes what setUser reads. A user of the image that is not named cannot be written with
// a group: ok is false then.
func userOf(s *runtimeapi.LinuxContainerSecurityContext) (user string, ok bool) {
	user = s.GetRunAsUsername()
	if id := s.GetRunAsUser(); id != nil {
		user = strconv.FormatInt(id.GetValue(), 10)
	}
	group := s.GetRunAsGroup()
	if group == nil {
		return user, true
	}
	return user + ":" + strconv.FormatInt(group.GetValue(), 10), user != ""
}
