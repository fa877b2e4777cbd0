package docker

import (
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
		Command:  c.Entrypoint, Args: c.Cmd, WorkingDir: c.WorkingDir, Labels: labels, Annotations: annotations,
		LogPath: c.Labels[logPathLabel], Stdin: c.OpenStdin, StdinOnce: c.StdinOnce, Tty: c.Tty,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: h.cri(),
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				Privileged: h.Privileged, ReadonlyRootfs: h.ReadonlyRootfs,
				Capabilities: &runtimeapi.Capability{AddCapabilities: h.CapAdd, DropCapabilities: h.CapDrop},
			},
		},
	}
	for _, line := range c.Env {
		if name, value, ok := strings.Cut(line, "="); ok { // with a name alone Docker removes a variable of the image
			config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(value)})
		}
	}
	config.Mounts = h.mounts()
	for _, d := range h.Devices {
		config.Devices = append(config.Devices, &runtimeapi.Device{
			HostPath: d.PathOnHost, ContainerPath: d.PathInContainer, Permissions: d.CgroupPermissions,
		})
	}

	security := config.Linux.SecurityContext
	user, group, _ := strings.Cut(c.User, ":") // each a number or a name
	if id, err := strconv.ParseInt(user, 10, 64); err == nil {
		security.RunAsUser = &runtimeapi.Int64Value{Value: id}
	} else {
		security.RunAsUsername = user
	}
	if id, err := strconv.ParseInt(group, 10, 64); err == nil {
		security.RunAsGroup = &runtimeapi.Int64Value{Value: id}
	}
	for _, g := range h.GroupAdd {
		if id, err := strconv.ParseInt(g, 10, 64); err == nil {
			security.SupplementalGroups = append(security.SupplementalGroups, id)
		}
	}
	setOptions(security, h.SecurityOpt)
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

// portOf is 0 for a text that is no port.
func portOf(text string) int32 {
	n, _ := strconv.ParseUint(text, 10, 16)
	return int32(n)
}

// userOf writes Docker's USER[:GROUP]. A user of the image that is not named cannot be written with
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
