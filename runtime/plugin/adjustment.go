package plugin

import (
	"github.com/wasmproxy/wasmproxy/abi"
)

// Limits of one call of one plugin.
const (
	maxChanges = 256
	maxValue   = 256 << 10 // bytes of one key and value
	maxTotal   = 1 << 20   // bytes of all of them: runtimes refuse a request of more than 16 MiB
	maxReason  = 1 << 10   // bytes of a rejection's reason that are kept
)

// Files says what may be written to cgroup files on this node.
type Files interface {
	// Version is that of the cgroup hierarchy, 1 or 2.
	Version() int
	// Parse returns value as it would be written to file, which is given by its
	// v2 name, so that two ways to write one value are equal. The error says
	// why a plugin may not write it, and wraps an abi.Errno.
	Parse(file, value string) (string, error)
}

// Adjustment collects what one plugin asks for in one call. It is a
// transaction: every write is checked when it is made, and all are applied
// together if the plugin succeeds. What an adjustment holds is not visible to
// the plugin that makes it. It is not safe for concurrent use.
type Adjustment struct {
	hook      abi.Hook
	files     Files
	owned     owners
	changes   []Change
	bytes     int // of their keys and values
	rejection *Rejection
	conflict  *ConflictError // the first that was answered to the plugin
}

// NewAdjustment returns an empty adjustment for one plugin in one hook with no
// plugin before it. Chains make their own; this is for tests of plugins.
func NewAdjustment(hook abi.Hook, files Files) *Adjustment {
	return &Adjustment{hook: hook, files: files}
}

// Changes returns what was accepted so far, in order. The caller must not change it.
func (a *Adjustment) Changes() []Change { return a.changes }

// Rejection returns the plugin's refusal, nil if there was none.
func (a *Adjustment) Rejection() *Rejection { return a.rejection }

// SetInt64 sets a field of type abi.Int64.
func (a *Adjustment) SetInt64(o abi.Object, f abi.Field, v int64) error {
	return a.add(Change{Op: SetInt64, Object: o, Field: f, Int: v})
}

// SetText sets a field of type abi.String.
func (a *Adjustment) SetText(o abi.Object, f abi.Field, v string) error {
	return a.add(Change{Op: SetText, Object: o, Field: f, Text: v})
}

// SetEntry sets one entry of a field of type abi.Map. In env it replaces the
// last occurrence of the name and removes earlier ones; a new name comes last.
func (a *Adjustment) SetEntry(o abi.Object, f abi.Field, key, v string) error {
	return a.add(Change{Op: SetEntry, Object: o, Field: f, Key: key, Text: v})
}

// DeleteEntry removes an entry of a field of type abi.Map; one that is not
// there is no error.
func (a *Adjustment) DeleteEntry(o abi.Object, f abi.Field, key string) error {
	return a.add(Change{Op: DeleteEntry, Object: o, Field: f, Key: key})
}

// WriteFile asks for a cgroup file of the pod or container, by its v2 name. It
// is for what CRI has no field for.
func (a *Adjustment) WriteFile(o abi.Object, file, v string) error {
	return a.add(Change{Op: WriteFile, Object: o, Key: file, Text: v})
}

// Reject refuses the call. code is abi.RejectFailedPrecondition or its like, 0
// standing for that one. Only Pre hooks can refuse: a pod must be killable, and
// what has happened cannot be refused.
func (a *Adjustment) Reject(code uint32, reason string) error {
	if !a.hook.Info().Pre {
		return &WriteError{Target: "reject", Errno: abi.Invalid, Reason: a.hook.String() + " cannot refuse a call"}
	}
	switch code {
	case 0:
		code = abi.RejectFailedPrecondition
	case abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition:
	default:
		return &WriteError{Target: "reject", Errno: abi.Invalid, Reason: "no such code"}
	}
	a.rejection = &Rejection{Code: code, Reason: printable(reason, maxReason)}
	return nil
}

func (a *Adjustment) add(c Change) error {
	if len(a.changes) >= maxChanges {
		return &WriteError{Target: c.Target(), Errno: abi.Limit}
	}
	c, err := a.check(c)
	if err != nil {
		return err
	}
	if err := a.owned.claim(c); err != nil {
		if a.conflict == nil {
			a.conflict = err
		}
		return err
	}
	a.changes = append(a.changes, c)
	a.bytes += c.size()
	return nil
}

// owners remembers who asked for what, over all plugins of one call.
type owners map[slot]Owned

// Owned is a change, the plugin that asked for it, and what its failure means.
type Owned struct {
	Plugin string
	Policy FailurePolicy
	Change Change
}

// claim returns the conflict that c would be.
func (o owners) claim(c Change) *ConflictError {
	for _, s := range c.slots() {
		if first, taken := o[s]; taken && !first.Change.agrees(c) {
			return &ConflictError{Change: c, First: first.Plugin}
		}
	}
	return nil
}

// record makes the member the owner of what no one owns yet.
func (o owners) record(m Member, changes []Change) {
	for _, c := range changes {
		for _, s := range c.slots() {
			if first, taken := o[s]; !taken || first.Plugin == m.ID {
				o[s] = Owned{m.ID, m.Policy, c}
			}
		}
	}
}
