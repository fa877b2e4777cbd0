package plugin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// GrantBounds bind grants to a part of what they are for, by patterns. A capability that is not in it is not bound. Those that
// can be bound are in Bindable.
type GrantBounds map[abi.Capability][]string

// Bindable are the capabilities that a grant can bind, and to what: host paths with all that is below them, or kinds of CDI devices.
var Bindable = map[abi.Capability]string{
	abi.WriteMounts:  `host paths such as "/opt/tools"`,
	abi.WriteDevices: `host paths such as "/dev/nvidia*"`,
	abi.WriteCDI:     `kinds such as "nvidia.com/gpu"`,
}

// CheckPattern says what is wrong with a pattern that is to bind the grant of a capability in Bindable; "" if nothing is.
func CheckPattern(of abi.Capability, pattern string) string {
	_, err := path.Match(pattern, "")
	switch {
	case err != nil || pattern == "":
		return quoted(pattern) + " is no pattern"
	case of == abi.WriteCDI && strings.Contains(pattern, "="):
		return quoted(pattern) + " is not the kind of a CDI device, which is before the ="
	case of != abi.WriteCDI && !clean(pattern):
		return quoted(pattern) + " is not an absolute, clean path"
	}
	return ""
}

// check refuses a mount, device or CDI device that the grant of its capability does not reach.
func (b GrantBounds) check(c *Change, needs abi.Capability, hostPath string) error {
	patterns, bound := b[needs]
	within := func(pattern string) bool { return below(pattern, hostPath) }
	what := hostPath
	if needs == abi.WriteCDI {
		what, _, _ = strings.Cut(c.Text, "=")
		within = func(pattern string) bool { ok, _ := path.Match(pattern, what); return ok }
	}
	if !bound || slices.ContainsFunc(patterns, within) {
		return nil
	}
	return refused(c, abi.Denied, fmt.Sprintf("the capability %s is granted for %s alone, and this is %s", needs, strings.Join(patterns, ", "), quoted(what)))
}

// below reports whether a clean path is one that the pattern names, or below such a one.
func below(pattern, p string) bool {
	if pattern == "/" {
		return true
	}
	parts := strings.Split(p, "/")
	depth := strings.Count(pattern, "/") + 1
	if len(parts) < depth {
		return false
	}
	ok, _ := path.Match(pattern, strings.Join(parts[:depth], "/"))
	return ok
}
