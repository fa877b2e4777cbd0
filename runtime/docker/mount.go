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
		bind := func(m *runtimeapi.Mount) any {
			path := m.GetContainerPath()
			at := slices.IndexFunc(of.HostConfig.Binds, func(b string) bool { return mountOf(b).GetContainerPath() == path })
			if at < 0 {
				return bindOf(m, "")
			}
			return bindOf(m, of.HostConfig.Binds[at])
		}
		h.set("Binds", kept(h, elementsOf(h.value("Binds")), was[:n], binds, bind))
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

// bindOf writes a mount as dockershim does, or, in the place of a bind, with the words of that for what stays as it was. What CRI
// cannot say stays with the host path, for which it was meant.
func bindOf(m *runtimeapi.Mount, before string) string {
	var readonly, relabel, propagation string
	var others []string
	if m.GetReadonly() {
		readonly = "ro"
	}
	if m.GetSelinuxRelabel() {
		relabel = "Z"
	}
	switch m.GetPropagation() {
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		propagation = "rshared"
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		propagation = "rslave"
	}
	source, rest, _ := strings.Cut(before, ":")
	_, had, _ := strings.Cut(rest, ":")
	for option := range strings.SplitSeq(had, ",") {
		switch option {
		case "ro", "rw", "Z":
		case "z":
			if relabel != "" {
				relabel = option
			}
		case "rshared", "shared", "rslave", "slave", "rprivate", "private":
			if propagationOf(option) == m.GetPropagation() {
				propagation = option
			}
		default:
			if source == m.GetHostPath() {
				others = append(others, option)
			}
		}
	}
	options := append([]string{readonly, relabel, propagation}, others...)
	bind := m.GetHostPath() + ":" + m.GetContainerPath()
	if options = slices.DeleteFunc(options, func(o string) bool { return o == "" }); len(options) > 0 {
		bind += ":" + strings.Join(options, ",")
	}
	return bind
}
