package cgroup

import (
	"path"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// PodPath returns the cgroup of a pod, which is the cgroup parent that kubelet
// gave its sandbox. Only the cgroupfs form is understood: a systemd slice is
// refused with abi.Unsupported, a path that is empty, the root or holds ".." with
// abi.Invalid.
func PodPath(cgroupParent string) (string, error) {
	rel, err := parent(cgroupParent)
	if err != nil {
		return "", rules.Fail("find", cgroupParent, "", "", err)
	}
	return "/" + rel, nil
}

// ContainerPath returns the cgroup of a container: its id beneath the cgroup
// parent, as containerd and Docker name it with the cgroupfs driver. It refuses
// what PodPath refuses, and an id that is no single path element.
func ContainerPath(cgroupParent, id string) (string, error) {
	pod, err := PodPath(cgroupParent)
	if err != nil {
		return "", err
	}
	if id == "" || id == "." || id == ".." || strings.ContainsAny(id, "/\x00") {
		return "", rules.Fail("find", cgroupParent, "", "", rules.Reason(abi.Invalid, "container id %.64q is not one path element", id))
	}
	return pod + "/" + id, nil
}

func parent(cgroupParent string) (string, error) {
	// containerd decides by the last element in the same way.
	if strings.HasSuffix(path.Base(cgroupParent), ".slice") {
		return "", rules.Reason(abi.Unsupported, "systemd slices are not supported, only the cgroupfs form of a cgroup parent")
	}
	return clean(cgroupParent)
}

// maxPath is Linux's PATH_MAX.
const maxPath = 4096

// clean returns a group's path relative to the hierarchy's root, in the one
// spelling by which it is remembered.
func clean(group string) (string, error) {
	if len(group) > maxPath {
		return "", rules.Reason(abi.Invalid, "path of %d bytes, limit %d", len(group), maxPath)
	}
	if strings.ContainsRune(group, 0) || slices.Contains(strings.Split(group, "/"), "..") {
		return "", rules.Reason(abi.Invalid, "a group may not hold .. or a zero byte")
	}
	rel := strings.TrimPrefix(path.Clean("/"+group), "/")
	if rel == "" {
		return "", rules.Reason(abi.Invalid, "the root group is the whole node's")
	}
	return rel, nil
}
