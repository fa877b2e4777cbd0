package enforce

import (
	"slices"
	"strconv"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// groupFiles are the files of one cgroup. It implements Kernel.
type groupFiles struct {
	*cgroup.Group
	none error // why there is no such group
	held Held  // what its files hold, as far as they were read
}

// get returns what a file of the group holds; "" if that is not known.
func (g groupFiles) get(file string) string {
	held, known := g.held[file]
	if !known {
		held, _ = g.Read(file)
	}
	return held
}

// Holds implements Kernel.
func (g groupFiles) Holds(file, value, held string) bool {
	return rules.Set(g.Version()).Holds(file, value, held)
}

// lessBurst has a burst go down before the quota, to which it would be cut otherwise.
func lessBurst(due []Write) []Write {
	for k, w := range due {
		if w.File != rules.CPUBurst {
			continue
		}
		value, err := strconv.ParseInt(w.Value, 10, 64)
		found, foundErr := strconv.ParseInt(w.Found, 10, 64)
		if err == nil && foundErr == nil && value < found {
			due[0], due[k] = due[k], due[0]
		}
	}
	return due
}

// Fit rounds a quota as systemd does, and cuts a burst to the quota of the moment, as the kernel
// refuses a larger one. The whole burst comes back with a larger quota.
func (g groupFiles) Fit(file, value string) string {
	if file != rules.CPUBurst {
		return g.Rounded(file, value)
	}
	return rules.FitBurst(value, g.get(rules.CPUMax))
}

// letsOthers reports whether a write lets other files of the group have a value that they could
// not have before.
func letsOthers(w Write, files []string) bool {
	switch {
	case endsIdle(w):
		return true
	case w.File == rules.CPUMax:
		return slices.Contains(files, rules.CPUBurst)
	}
	return w.Kind == Undo && slices.Contains(files, rules.OtherView(w.File))
}

// endsIdle reports whether the group of a write gets a share of the CPU again.
func endsIdle(w Write) bool { return w.File == rules.CPUIdle && w.Value == "0" }
