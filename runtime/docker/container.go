package docker

import (
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerConfig is a container as CRI has it.
func containerConfig(name string, c *container, k kind) *runtimeapi.ContainerConfig {
	labels, annotations := split(c.Labels, k.prefix())
	h, n := &c.HostConfig, namesOf(name, c.Labels, k)
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: n.container, Attempt: n.attempt},
		Image:    &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image},
		Command:  c.Entrypoint, Args: c.Cmd, WorkingDir: c.WorkingDir, Envs: environment(c.Env), Labels: labels, Annotations: annotations,
		LogPath: c.Labels[logPathLabel], Stdin: c.OpenStdin, StdinOnce: c.StdinOnce, Tty: c.Tty,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       h.cri(),
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{Privileged: h.Privileged, ReadonlyRootfs: h.ReadonlyRootfs},
		},
	}
	config.Mounts = h.mounts()
	for _, d := range h.Devices {
		config.Devices = append(config.Devices, &runtimeapi.Device{
			HostPath: d.PathOnHost, ContainerPath: d.PathInContainer, Permissions: d.CgroupPermissions,
		})
	}
	setUser(config.Linux.SecurityContext, c.User, h.GroupAdd)
	return config
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
