package docker

import (
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mounts are Binds, and then the binds of Mounts.
func (h *hostConfig) mounts() (all []*runtimeapi.Mount) {
	for _, b := range h.Binds {
		all = append(all, mountOf(b))
	}
	for _, m := range h.Mounts {
		if m.isBind() {
			all = append(all, &runtimeapi.Mount{
				HostPath: m.Source, ContainerPath: m.Target, Readonly: m.ReadOnly,
				Propagation: propagationOf(m.BindOptions.Propagation),
			})
		}
	}
	return all
}

func (m *mount) isBind() bool { return m.Type == "bind" }

func propagationOf(option string) runtimeapi.MountPropagation {
	switch option {
	case "rshared", "shared":
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	case "rslave", "slave":
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	}
	return runtimeapi.MountPropagation_PROPAGATION_PRIVATE
}

// mounts edits Binds and Mounts. A bind of Mounts that plugins leave stays there; those that they add or
// change are in Binds then.
func (c *changes) mounts(h *edit, of *container, was, is []*runtimeapi.Mount) {
	n := len(of.HostConfig.Binds)
	stays := make([]bool, len(was)-n)
	var binds []*runtimeapi.Mount
	for _, m := range is {
		at := -1
		for i := range stays {
			if at < 0 && !stays[i] && proto.Equal(was[n+i], m) {
				at = i
			}
		}
		if at < 0 {
			binds = append(binds, m)
		} else {
			stays[at] = true
		}
	}
	if !equal(was[:n], binds) {
		h.set("Binds", kept(h, elementsOf(h.value("Binds")), was[:n], binds, func(m *runtimeapi.Mount) any { return bindOf(m) }))
	}
	if !slices.Contains(stays, false) {
		return
	}
	left := []json.RawMessage{}
	for i, text := range elementsOf(h.value("Mounts")) {
		if i < len(of.HostConfig.Mounts) && of.HostConfig.Mounts[i].isBind() {
			var stay bool
			if stay, stays = stays[0], stays[1:]; !stay {
				continue
			}
		}
		left = append(left, text)
	}
	h.set("Mounts", left)
}

// mountOf reads HOST:CONTAINER[:OPTIONS].
func mountOf(bind string) *runtimeapi.Mount {
	parts := strings.SplitN(bind, ":", 3)
	if len(parts) == 1 {
		return &runtimeapi.Mount{ContainerPath: bind}
	}
	m := &runtimeapi.Mount{HostPath: parts[0], ContainerPath: parts[1]}
	if len(parts) < 3 {
		return m
	}
	for option := range strings.SplitSeq(parts[2], ",") {
		switch option {
		case "ro":
			m.Readonly = true
		case "z", "Z":
			m.SelinuxRelabel = true
		default:
			m.Propagation = max(m.Propagation, propagationOf(option))
		}
	}
	return m
}

// bindOf writes a mount as dockershim does.
func bindOf(m *runtimeapi.Mount) string {
	var options []string
	if m.GetReadonly() {
		options = append(options, "ro")
	}
	if m.GetSelinuxRelabel() {
		options = append(options, "Z")
	}
	switch m.GetPropagation() {
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		options = append(options, "rshared")
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		options = append(options, "rslave")
	}
	bind := m.GetHostPath() + ":" + m.GetContainerPath()
	if len(options) > 0 {
		bind += ":" + strings.Join(options, ",")
	}
	return bind
}
