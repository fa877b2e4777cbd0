package plugin

import (
	"path"
	"strings"
	"unicode"

	"github.com/wasmproxy/wasmproxy/abi"
)

// checkCgroupParent refuses a cgroup parent outside the one that the event's pod
// has, which is kubelet's or lies below it: elsewhere the pod could use, and its
// plugins could write, what belongs to the rest of the node. The event is nil in tests.
func checkCgroupParent(a *scope, c *Change) error {
	parent, ev := c.Text, a.event
	absolute := strings.HasPrefix(parent, "/") && parent == path.Clean(parent) && parent != "/"
	slice := strings.HasSuffix(parent, ".slice") && !strings.Contains(parent, "/")
	if !absolute && !slice || strings.ContainsFunc(parent, unicode.IsControl) {
		return refused(c, abi.Invalid, quoted(parent)+": want an absolute, clean path below /, or a systemd slice, without control characters")
	}
	if ev == nil {
		return nil
	}
	of, _ := ev.Text(abi.Pod, abi.PodCgroupParent)
	if of == "" {
		return refused(c, abi.Denied, quoted(parent)+": want a path at or below the pod's own cgroup parent, which is not known")
	}
	if !BelowParent(of, parent) {
		return refused(c, abi.Denied, quoted(parent)+": want a path at or below the pod's own cgroup parent, "+quoted(of))
	}
	return nil
}

// BelowParent reports whether a cgroup parent is another one or lies below it. Of
// a systemd slice the last element alone counts, as for container runtimes: the
// slice a-b.slice lies below a.slice wherever it is written. A slice and a path of
// the cgroupfs form do not compare.
func BelowParent(of, parent string) bool {
	if strings.HasSuffix(of, ".slice") != strings.HasSuffix(parent, ".slice") {
		return false
	}
	if strings.HasSuffix(of, ".slice") {
		upper, lower := path.Base(of), path.Base(parent)
		return upper == lower || strings.HasPrefix(lower, strings.TrimSuffix(upper, ".slice")+"-")
	}
	of = path.Clean("/" + of)
	return of != "/" && (parent == of || strings.HasPrefix(parent, of+"/"))
}
