package plugin

import (
	"fmt"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Limits of one call of one plugin.
const (
	maxChanges = 256
	tickMost   = 8192      // changes of a Tick: two of each of a node's containers
	maxValue   = 256 << 10 // bytes of one key and value
	maxTotal   = 1 << 20   // bytes of all of them: runtimes refuse a request of more than 16 MiB
	maxReason  = 1 << 10   // bytes of a rejection's reason that are kept
)

// Adjustment collects the changes that one plugin wants in one call. It is a
// transaction: every write is checked when it is made, and all are applied
// together if the plugin succeeds. What an adjustment holds is not visible to
// the plugin that makes it. It is not safe for concurrent use.
type Adjustment struct {
	scope
	untaken   bool // nobody has taken the last of refusals yet; see Refusal
	owned     owners
	changes   []Owned
	bytes     int // of their keys and values
	rejection *Rejection
	conflict  *ConflictError // the first that was answered to the plugin
	opponent  string         // the plugin that the last one was with
	refusals  []*WriteError  // some of them; see Refused
	secrets   *redaction     // nil until the plugin says something
	called    observe.HookCalled
	first     [3]Owned // where changes are, as long as they are few: with more the struct takes a larger piece of memory
}

// unchained is the place of plugins that run outside a chain.
var unchained = Member{Capabilities: abi.AllCapabilities}

// NewAdjustment returns an empty adjustment for one plugin in one hook with no event, no
// plugin before it, and all capabilities. It is for plugins that run outside a chain.
func NewAdjustment(hook abi.Hook, cgroupVersion int) *Adjustment {
	return &Adjustment{scope: scope{of: &unchained, hook: hook, cgroupVersion: cgroupVersion}}
}

// NewAdjustment returns an empty adjustment for the member, as a chain makes it for its first.
func (m *Member) NewAdjustment(ev Event, cgroupVersion int) *Adjustment {
	return &Adjustment{scope: scope{m, ev.Hook(), ev, cgroupVersion}}
}

// Use notes what the call cost: units of fuel, and calls of host functions.
func (a *Adjustment) Use(fuel, hostCalls int64) { a.called.Fuel, a.called.HostCalls = fuel, hostCalls }

// Used returns what Use was told.
func (a *Adjustment) Used() (fuel, hostCalls int64) { return a.called.Fuel, a.called.HostCalls }

// Changes returns what was accepted so far, in order.
func (a *Adjustment) Changes() []Change {
	all := make([]Change, len(a.changes))
	for i := range a.changes {
		all[i] = a.changes[i].Change
	}
	return all
}

// Rejection returns the plugin's refusal, nil if there was none.
func (a *Adjustment) Rejection() *Rejection { return a.rejection }

// SetInt64 sets a field of type abi.Int64.
func (a *Adjustment) SetInt64(o abi.Object, f abi.Field, v int64) error {
	return a.Add(Change{Op: SetInt64, Object: o, Field: f, Int: v})
}

// SetText sets a field of type abi.String.
func (a *Adjustment) SetText(o abi.Object, f abi.Field, v string) error {
	return a.Add(Change{Op: SetText, Object: o, Field: f, Text: v})
}

// SetEntry sets one entry of a field of type abi.Map. In env it replaces the
// last occurrence of the name and removes earlier ones; a new name comes last.
func (a *Adjustment) SetEntry(o abi.Object, f abi.Field, key, v string) error {
	return a.Add(Change{Op: SetEntry, Object: o, Field: f, Key: key, Text: v})
}

// DeleteEntry removes an entry of a field of type abi.Map; one that is not
// there is no error.
func (a *Adjustment) DeleteEntry(o abi.Object, f abi.Field, key string) error {
	return a.Add(Change{Op: DeleteEntry, Object: o, Field: f, Key: key})
}

// AddElement adds an element to a field of type abi.Set, or replaces the one with
// its key. An element that is a record is entries, as abi.AppendEntries writes them.
func (a *Adjustment) AddElement(o abi.Object, f abi.Field, element string) error {
	return a.Add(Change{Op: AddElement, Object: o, Field: f, Text: element})
}

// DeleteElement removes the element with a key from a field of type abi.Set; one
// that is not there is no error.
func (a *Adjustment) DeleteElement(o abi.Object, f abi.Field, key string) error {
	return a.Add(Change{Op: DeleteElement, Object: o, Field: f, Key: key})
}

// WriteFile asks for a cgroup file of the pod or container, by its v2 name.
func (a *Adjustment) WriteFile(o abi.Object, file, v string) error {
	return a.Add(Change{Op: WriteFile, Object: o, Key: file, Text: v})
}

// Withdraw takes back what the plugin has asked for of a field, of its entry or element with the key, or, with
// field 0, of the cgroup file that the key names: in this call, as if it had not asked, and in earlier ones.
// gone is how many changes it went through.
func (a *Adjustment) Withdraw(o abi.Object, f abi.Field, key string) (gone int, err error) {
	c := Change{Op: Withdraw, Object: o, Field: f, Key: key}
	place(a.event, &c)
	if err := a.check(&c); err != nil {
		return 0, a.keep(err)
	}
	if a.secrets != nil {
		a.secrets.changes = 0 // what follows moves up
	}
	gone = len(a.changes)
	a.changes = slices.DeleteFunc(a.changes, func(own Owned) bool {
		d := &own.Change
		named := d.Field == c.Field && d.Key == c.Key
		same := named && d.IsFile() == c.IsFile() && d.SameObject(&c)
		if same {
			a.bytes -= d.size()
		}
		return same
	})
	if earlier, ok := a.event.(Remembering); ok && earlier.Holds(a.of.ID, &c) {
		c.own()
		a.changes = append(a.changes, Owned{a.of.ID, a.of.Policy, c})
		a.bytes += c.size()
	}
	return gone, nil
}

// Leave says that the plugin leaves what the event has, which c would set. If the caller gives that value, what the plugin
// asked for in an earlier call does not take its place.
func (a *Adjustment) Leave(c Change) error {
	if earlier, ok := a.event.(Remembering); !ok || !earlier.Replaces(a.of.ID, &c) {
		return nil
	}
	_, err := a.Withdraw(c.Object, c.Field, c.Key)
	return err
}

// Opponent returns the plugin with which the last change that was refused with CONFLICT conflicts; "" if none was.
func (a *Adjustment) Opponent() string { return a.opponent }

// Reject refuses the call. code is abi.RejectFailedPrecondition or its like, 0
// standing for that one. Only Pre hooks can refuse: a pod must be killable, and
// what has happened cannot be refused.
func (a *Adjustment) Reject(code uint32, reason string) error {
	if a.hook.Info().Phase != abi.Before {
		return a.keep(&WriteError{Target: "reject", Errno: abi.Invalid, Reason: a.hook.String() + " cannot refuse a call"})
	}
	switch code {
	case 0:
		code = abi.RejectFailedPrecondition
	case abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition:
	default:
		return a.keep(&WriteError{Target: "reject", Errno: abi.Invalid, Reason: fmt.Sprintf("code %d: want %d, %d, %d or %d", code,
			abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition)})
	}
	a.rejection = &Rejection{Code: code, Reason: a.Sanitize(reason, maxReason)}
	return nil
}

// Add checks a change, in its place among the others, and keeps a copy of it if it is allowed: its texts
// may be lent. The other methods are forms of it.
func (a *Adjustment) Add(c Change) error {
	place(a.event, &c)
	most := maxChanges
	if a.hook == abi.Tick {
		most = tickMost
	}
	if len(a.changes) >= most {
		return a.keep(refused(&c, abi.Limit, fmt.Sprintf("more than %d changes in one call", most)))
	}
	n := len(a.changes)
	switch {
	case a.changes == nil:
		a.changes = a.first[:0]
	case n == len(a.first):
		a.changes = slices.Grow(a.changes, 8-n) // from where doubling ends at maxChanges
	}
	a.changes = append(a.changes, Owned{a.of.ID, a.of.Policy, c})
	added := &a.changes[n].Change // c itself would have to be allocated
	err := a.check(added)
	if err == nil {
		conflict := a.owned.claim(added)
		if earlier, ok := a.event.(Remembering); ok && conflict == nil {
			if first := earlier.Opposed(added); first != "" && first != a.of.ID {
				conflict = &ConflictError{Change: *added, First: first}
			}
		}
		if conflict != nil {
			err, a.opponent = conflict, conflict.First
			if a.conflict == nil {
				conflict.Change.own()
				a.conflict = conflict
			}
		}
	}
	if err != nil {
		a.changes[n] = Owned{} // its texts may be a guest's memory, which ends before this slice
		a.changes = a.changes[:n]
		return a.keep(err)
	}
	added.own()
	a.bytes += added.size()
	return nil
}

// place has a change of a handle know what that stands for.
func place(ev Event, c *Change) {
	if c.Object >= abi.FirstHandle && ev != nil {
		if kind := ev.Kind(c.Object); kind < abi.FirstHandle {
			c.Of, c.Own = kind, ev.Own(c.Object)
		}
	}
}

// Remembering is an Event that remembers which plugins have set cgroup files and resources in
// earlier hooks.
type Remembering interface {
	// Opposed returns the plugin from which the cgroup file or resource has its value, if the
	// change wants another value; "" if there is none. What a plugin has withdrawn in this event is not its any more.
	Opposed(c *Change) (plugin string)
	// Holds reports whether a plugin has asked for a value of what the change withdraws.
	Holds(plugin string, c *Change) bool
	// Replaces reports whether the caller gives a resource a value, and a plugin has asked for another one than the change sets.
	Replaces(plugin string, c *Change) bool
}

// owners remembers which plugin set what, over all plugins of one call. It is made when the
// first plugin that another one follows has made a change.
type owners map[slot]Owned

// Owned is a change, the plugin that wants it, and what its failure means.
type Owned struct {
	Plugin string
	Policy FailurePolicy
	Change Change
}

// claim returns the conflict that c would be: another change of a slot wants something else. A field and a file never agree. Two
// ways to write one file do if they write the same text; two files that one field sets are no more than neighbours.
func (o owners) claim(c *Change) *ConflictError {
	if o == nil {
		return nil
	}
	_, file := c.file()
	for _, s := range c.slots(make([]slot, 0, maxSlots)) {
		first, taken := o[s]
		if !taken {
			continue
		}
		d := &first.Change
		_, other := d.file()
		agree := false
		switch {
		case file != other:
		case file && s.field != 0: // the slots of their own tell
			agree = true
		case file:
			agree = c.Key == d.Key && c.Text == d.Text && (c.Op == DeleteEntry) == (d.Op == DeleteEntry)
		default:
			agree = c.Op == d.Op && c.Int == d.Int && c.Text == d.Text
		}
		if !agree {
			return &ConflictError{Change: *c, First: first.Plugin}
		}
	}
	return nil
}

// record makes the plugin of the changes the owner of what no plugin owns yet.
func (o *owners) record(changes []Owned) {
	if *o == nil && len(changes) > 0 {
		*o = owners{}
	}
	for _, c := range changes {
		if c.Change.Op == Withdraw { // it owns nothing
			continue
		}
		for _, s := range c.Change.slots(make([]slot, 0, maxSlots)) {
			if first, taken := (*o)[s]; !taken || first.Plugin == c.Plugin {
				(*o)[s] = c
			}
		}
	}
}
