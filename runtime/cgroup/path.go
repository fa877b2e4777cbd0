package cgroup

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups/systemd"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

const (
	slice = ".slice"
	scope = ".scope"
)

// PodPath returns the cgroup of a pod, which is the cgroup parent that kubelet gave its
// sandbox. Of a systemd slice the name alone decides, as it does for runc: a-b.slice is
// /a.slice/a-b.slice, also if the parent has no directories or others. A path that is empty,
// the root or holds ".." is refused with abi.Invalid.
func PodPath(cgroupParent string) (string, error) {
	group, err := podPath(cgroupParent)
	return group, rules.Fail("find", cgroupParent, "", "", err)
}

func podPath(cgroupParent string) (string, error) {
	rel, err := clean(cgroupParent)
	if err == nil && strings.HasSuffix(rel, slice) {
		return slicePath(path.Base(rel))
	}
	return absolute(rel, err)
}

// QOSClassPath returns the cgroup of a pod's QoS class, which is the parent of the pod's cgroup:
// kubelet's kubepods, or burstable or besteffort beneath it. The code of its error is
// abi.NotFound if the pod's cgroup is elsewhere, and else that of PodPath.
func QOSClassPath(cgroupParent string) (group string, err error) {
	defer func() { err = rules.Fail("find the QoS class of", cgroupParent, "", "", err) }()
	pod := "/"
	if strings.Trim(cgroupParent, "/") != "" {
		if pod, err = podPath(cgroupParent); err != nil {
			return "", err
		}
	}
	class := path.Dir(pod)
	if isQOSClass(pod) || !isQOSClass(class) {
		return "", rules.Reason(abi.NotFound, "the pod is not in a cgroup that kubelet makes for a QoS class")
	}
	return class, nil
}

// isQOSClass goes by kubelet's names: kubepods, and burstable or besteffort beneath it. The name
// of a slice has those of the slices above it, kubepods-burstable.slice.
func isQOSClass(group string) bool {
	names := strings.Split(group, "/")
	if unit, ok := strings.CutSuffix(path.Base(group), slice); ok {
		names = strings.Split(unit, "-")
	}
	if last := len(names) - 1; last > 0 && (names[last] == "burstable" || names[last] == "besteffort") {
		names = names[:last]
	}
	return names[len(names)-1] == "kubepods"
}

// slicePath expands the name of a slice.
func slicePath(name string) (string, error) {
	group, err := systemd.ExpandSlice(name)
	if err != nil {
		return "", rules.Reason(abi.Invalid, "%.256q is not the name of a systemd slice", name)
	}
	return absolute(clean(group))
}

// ContainerPaths returns the cgroups that a container may have beneath its cgroup parent. Only
// the container runtime decides which, see package dialect. It refuses the parents that PodPath
// refuses, and an id that is not a single path element.
func ContainerPaths(cgroupParent, id string) ([]string, error) {
	pod, err := PodPath(cgroupParent)
	if err != nil {
		return nil, err
	}
	special := id == "" || id == "." || id == ".."
	if special || strings.ContainsAny(id, "/\x00") {
		return nil, rules.Fail("find", cgroupParent, "", "", rules.Reason(abi.Invalid, "container id %.64q is not one path element", id))
	}
	groups := dialect.Union(func(r dialect.Runtime) []string {
		if strings.HasSuffix(pod, slice) {
			return []string{r.Scope}
		}
		return []string{r.Cgroup}
	})
	for i, name := range groups {
		groups[i] = pod + "/" + strings.Replace(name, "ID", id, 1)
	}
	return groups, nil
}

// FindContainer returns the one of ContainerPaths that exists, and false with the first of
// them if none does.
func (f *FS) FindContainer(cgroupParent, id string) (group string, exists bool, err error) {
	groups, err := ContainerPaths(cgroupParent, id)
	if err != nil {
		return "", false, err
	}
	for _, group := range groups {
		if f.exists(group[1:]) == nil {
			return group, true, nil
		}
	}
	return groups[0], false, nil
}

// ReportedPath returns the cgroup that the kernel or the container runtime reports of a
// container: a path, or the runtime spec's slice:prefix:name for a unit of systemd, which runc
// and crun call prefix-name.scope. It refuses what PodPath refuses.
func ReportedPath(reported string) (group string, err error) {
	defer func() { err = rules.Fail("find", reported, "", "", err) }()
	parts := strings.Split(reported, ":")
	if len(parts) != 3 || strings.Contains(reported, "/") {
		return absolute(clean(reported))
	}
	parent, prefix, unit := parts[0], parts[1], parts[2]
	parent, err = slicePath(cmp.Or(parent, "system.slice")) // runc's and crun's default
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(unit, slice) {
		if prefix != "" {
			unit = prefix + "-" + unit
		}
		unit += scope
	}
	return absolute(clean(parent + "/" + unit))
}

// absolute is a path from the hierarchy's root, of what clean returns.
func absolute(rel string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return "/" + rel, nil
}

// maxPath is Linux's PATH_MAX.
const maxPath = 4096

// clean returns a group's path relative to the hierarchy's root, in the one
// spelling by which it is remembered.
func clean(group string) (string, error) {
	if len(group) > maxPath {
		return "", rules.Reason(abi.Invalid, "path of %d bytes, limit %d", len(group), maxPath)
	}
	if strings.ContainsRune(group, 0) || strings.Contains(group, "..") && slices.Contains(strings.Split(group, "/"), "..") {
		return "", rules.Reason(abi.Invalid, "a group may not hold .. or a zero byte")
	}
	rel := strings.TrimPrefix(path.Clean("/"+group), "/")
	if rel == "" {
		return "", rules.Reason(abi.Invalid, "the root group is the whole node's")
	}
	return rel, nil
}
