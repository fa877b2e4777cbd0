package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/cgroups/v3"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// exists reports why a group is not there; nil if a controller has it. It refuses a path that
// leaves the root.
func (f *FS) exists(rel string) error {
	err := rules.Reason(abi.Unsupported, "no controller is mounted")
	for _, top := range f.dirs {
		fd, openErr := openBeneath(top, rel)
		if openErr == nil {
			return unix.Close(fd)
		}
		if err = openErr; !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return err
}

// Gone reports whether the kernel says that there is no such group. Where it cannot tell, such as
// without a free file descriptor, the group may be there. One whose path is wrong is gone.
func (f *FS) Gone(group string) bool {
	rel, err := clean(group)
	if err == nil {
		err = f.exists(rel)
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
	}
	return true
}

// GroupOfProcess returns the cgroup of a container, by its id, as the kernel has it
// of one of the container's processes. Every runtime names a container's cgroup with
// the id: so a pid that is another process by now, or means another one in the pid
// namespace of this program, is refused with abi.NotFound. So is a group that the
// cgroup mount does not show.
func (f *FS) GroupOfProcess(pid int, id string) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", rules.Fail("find", "", "", "", err)
	}
	group, ok := groupIn(string(b), f.version, f.shown, id)
	if !ok {
		err = rules.Reason(abi.NotFound, "process %d is not in a cgroup of container %.64q", pid, id)
	}
	return group, rules.Fail("find", "", "", "", err)
}

// groupIn finds the container's cgroup in the text of a /proc/PID/cgroup, whose
// lines are number:controllers:path. On v1 it is that of the cpu controller; a v1
// hierarchy without it, and v2, have one path. A container may have cgroups of its
// own below its own, and crun makes one that is called container. shown is the group
// that the mount shows at its top.
func groupIn(text string, version int, shown, id string) (group string, ok bool) {
	byController, path, err := cgroups.ParseCgroupFromReaderUnified(strings.NewReader(text))
	if version == 1 {
		path = byController["cpu"]
	}
	if err != nil || path == "" || id == "" {
		return "", false
	}
	// Both paths are seen from the cgroup namespace of this program: outside it they begin with "..".
	below, err := filepath.Rel(strings.TrimPrefix(shown, "/"), strings.TrimPrefix(path, "/"))
	elements := strings.Split(below, "/")
	at := slices.IndexFunc(elements, func(e string) bool { return strings.Contains(e, id) })
	if err != nil || at < 0 {
		return "", false
	}
	group, err = absolute(clean(strings.Join(elements[:at+1], "/")))
	return group, err == nil
}

// shownBy returns the group that the mount at a directory shows at its top, as
// /proc/self/mountinfo has it: "/" but in a container with a part of the hierarchy, or with
// a cgroup namespace of its own and the node's whole hierarchy.
func shownBy(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "/"
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != real, false })
	if err != nil || len(mounts) == 0 {
		return "/"
	}
	return mounts[len(mounts)-1].Root // a later mount hides an earlier one
}
