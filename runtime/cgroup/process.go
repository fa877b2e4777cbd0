package cgroup

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Exists reports whether the group is there.
func (f *FS) Exists(group string) bool {
	rel, err := clean(group)
	return err == nil && f.exists(rel) == nil
}

// GroupOfProcess returns the cgroup of a container, by its id, as the kernel has it
// of one of the container's processes. Every runtime names a container's cgroup with
// the id: so a pid that is another process by now, or means another one in the pid
// namespace of this program, is refused with abi.NotFound. So is a path above the
// cgroup namespace of this program.
func (f *FS) GroupOfProcess(pid int, id string) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	group, ok := "", false
	if err == nil {
		group, ok = groupIn(string(b), f.version, id)
	}
	switch {
	case err != nil:
		err = bare(err)
	case !ok:
		err = rules.Reason(abi.NotFound, "process %d is not in a cgroup of container %.64q", pid, id)
	}
	if err != nil {
		return "", rules.Fail("find", "", "", "", err)
	}
	return group, nil
}

// groupIn finds the container's cgroup in the text of a /proc/PID/cgroup, whose
// lines are number:controllers:path. On v1 it is that of the cpu controller; a v1
// hierarchy without it, and v2, have one path. A container may have cgroups of its
// own below its own.
func groupIn(text string, version int, id string) (group string, ok bool) {
	for line := range strings.Lines(text) {
		_, line, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, path, _ := strings.Cut(line, ":")
		if version == 2 && controllers != "" || version == 1 && !slices.Contains(strings.Split(controllers, ","), "cpu") {
			continue
		}
		elements := strings.Split(path, "/")
		at := slices.IndexFunc(elements, func(e string) bool { return id != "" && strings.Contains(e, id) })
		if at < 0 || slices.Contains(elements, "..") {
			return "", false
		}
		return strings.Join(elements[:at+1], "/"), true
	}
	return "", false
}
