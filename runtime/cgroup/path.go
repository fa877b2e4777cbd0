package cgroup

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// ErrSystemd is why no file of a cgroup that the systemd driver made is read or
// written.
var ErrSystemd = errors.New("the node's cgroup driver is systemd, and cgroup files are supported only with cgroupfs")

// PodPath returns the cgroup of a pod, which is the cgroup parent that kubelet
// gave its sandbox. Only the cgroupfs form is understood: a systemd slice is
// refused with abi.Unsupported and [ErrSystemd], a path that is empty, the root or
// holds ".." with abi.Invalid.
func PodPath(cgroupParent string) (string, error) { return located(cgroupParent) }

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

// ReportedPath returns the cgroup that the kernel or the runtime reports of a
// container. It refuses what PodPath refuses; systemd's forms are a path to a scope
// and the runtime spec's slice:prefix:name.
func ReportedPath(reported string) (string, error) { return located(reported) }

func located(group string) (string, error) {
	rel, err := clean(group)
	if bySystemd(group) {
		err = rules.Reason(abi.Unsupported, "%w", ErrSystemd)
	}
	if err != nil {
		return "", rules.Fail("find", group, "", "", err)
	}
	return "/" + rel, nil
}

// bySystemd tells systemd's names. containerd decides by the last element in the
// same way.
func bySystemd(group string) bool {
	base := path.Base(group)
	return strings.HasSuffix(base, ".slice") || strings.HasSuffix(base, ".scope") || strings.Contains(group, ".slice:")
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
