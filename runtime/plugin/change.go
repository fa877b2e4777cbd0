package plugin

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// Op is what a Change does.
type Op uint8

// The operations.
const (
	SetInt64      Op = iota + 1 // Field := Int
	SetText                     // Field := Text
	SetEntry                    // Field[Key] := Text
	DeleteEntry                 // delete Field[Key]
	WriteFile                   // cgroup file Key := Text
	SetList                     // Field := Elements()
	AddElement                  // the element of Field with Key := Text
	DeleteElement               // delete the element of Field with Key
	Withdraw                    // the plugin no longer wants what it has asked for of Field, or of cgroup file Key, in an earlier hook
)

// opTypes are the types of the fields that operations are for. Withdraw is for all.
var opTypes = [Withdraw + 1]abi.Type{
	SetInt64: abi.Int64, SetText: abi.String, SetEntry: abi.Map, DeleteEntry: abi.Map, SetList: abi.List,
	AddElement: abi.Set, DeleteElement: abi.Set,
}

// Change is one thing that a plugin wants.
type Change struct {
	Op     Op
	Own    bool       // Object is a handle of what the event is about
	Raises bool       // it is a limit of a container above its pod's, which is to be raised with it
	Object abi.Object // whose field or file: the event's own object, or a handle of the event
	Of     abi.Object // what the handle stands for, abi.Pod or abi.Container; 0 if Object is none
	Field  abi.Field  // 0: the cgroup file Key
	Key    string     // the map's or element's key, or the cgroup file by its v2 name
	Int    int64
	Text   string // of SetList what abi.AppendList makes of the elements; an element that is a record as abi.AppendRecord writes it
}

// Elements returns what SetList sets.
func (c *Change) Elements() []string {
	var list []string
	abi.EachElement(c.Text, func(e string) bool { list = append(list, e); return true })
	return list
}

// Kind returns what is changed: abi.Pod, abi.Container or abi.Event, also of a handle.
func (c *Change) Kind() abi.Object {
	if c.Of != 0 {
		return c.Of
	}
	return c.Object
}

// Target names what the change touches, such as
// container.annotations["example.com/tier"] or container cgroup file cpu.idle.
// A handle is an "other" pod or container.
func (c *Change) Target() string {
	object := c.Kind().String()
	if c.Object >= abi.FirstHandle && c.Object < abi.QOSClass {
		object = "other " + object
	}
	if c.IsFile() {
		return object + " cgroup file " + c.Key
	}
	switch info := FieldOf(c.Kind(), c.Field); {
	case info == nil:
		return object + "."
	case info.Type == abi.Map || info.Type == abi.Set:
		return object + "." + info.Name + "[" + strconv.Quote(c.Key) + "]"
	default:
		return object + "." + info.Name
	}
}

// IsFile reports whether the change is of a cgroup file by its name, and not of a field.
func (c *Change) IsFile() bool { return c.Op == WriteFile || c.Op == Withdraw && c.Field == 0 }

// OfMessage reports whether the change alters the call's own message.
func (c *Change) OfMessage() bool {
	return !c.IsFile() && c.Op != Withdraw && c.Object < abi.FirstHandle
}

// SameObject reports whether two changes of an event are of the same object.
func (c *Change) SameObject(d *Change) bool { return c.owner() == d.owner() }

// owner is whose field or file it is: the event's own object, also if that was named by a handle.
func (c *Change) owner() abi.Object {
	if c.Own {
		return c.Of
	}
	return c.Object
}

// EndsIdle reports whether the change sets the cgroup file cpu.idle to 0.
func (c *Change) EndsIdle() bool {
	return c.Op == WriteFile && c.Key == rules.CPUIdle && c.Text == "0"
}

// own makes copies of the change's texts, in one piece of memory.
func (c *Change) own() {
	var both strings.Builder
	both.Grow(len(c.Key) + len(c.Text))
	both.WriteString(c.Key)
	both.WriteString(c.Text)
	c.Key, c.Text = both.String()[:len(c.Key)], both.String()[len(c.Key):]
}

// size is how many bytes the change adds to a request at most.
func (c *Change) size() int { return len(c.Key) + len(c.Text) }

// withdrawn is the value of a change that withdraws.
const withdrawn = "(withdrawn)"

// value returns what the change sets, for logs: at most 1 KiB of it, made printable; "" where it
// deletes, and nothing of what may be a secret: an environment variable, and a command
// with its arguments, in which kubelet has put the values of $(VARIABLES).
func (c *Change) value(printable func(text string, limit int) string) string {
	switch {
	case c.Op == Withdraw:
		return withdrawn
	case c.Op == DeleteEntry, c.Op == DeleteElement:
		return ""
	case c.Op == SetInt64:
		return strconv.FormatInt(c.Int, 10)
	case c.isEnv():
		return Redacted
	case c.Op == SetList:
		return "(" + strconv.Itoa(len(c.Elements())) + " hidden)"
	case c.Op == AddElement && recordOf(c.Kind(), c.Field) != nil:
		var words []string
		abi.EachEntry(c.Text, func(k, v string) bool { words = append(words, k+"="+v); return true })
		return printable(strings.Join(words, " "), maxReason)
	}
	return printable(c.Text, maxReason)
}

func (c *Change) isEnv() bool { return c.Kind() == abi.Container && c.Field == abi.ContainerEnv }

// slot is what a change is a claim on. A CRI field, its key of the unified map
// and its cgroup file are one slot, whichever way a plugin reaches it; so are the
// event's own object and a handle of it.
type slot struct {
	object abi.Object
	field  abi.Field
	key    string
}

// maxSlots is how many slots a change has at most: cpu.max is its own and two fields'.
const maxSlots = 3

// slots appends what the change claims to claims: its field, or its file and the fields
// that set the file.
func (c *Change) slots(claims []slot) []slot {
	object := c.owner()
	base, file := c.file()
	switch {
	case c.Kind() == abi.Container && c.Field == abi.ContainerRunAsUsername: // it takes the number's place
		return append(claims, slot{object, abi.ContainerRunAsUser, ""})
	case !file:
		return append(claims, slot{object, c.Field, c.Key})
	}
	x := rules.Find(c.Key)
	if x == nil {
		return append(claims, slot{object, 0, c.Key})
	}
	claims = append(claims, slot{object, 0, cmp.Or(x.Same, c.Key)})
	for _, f := range x.Fields {
		claims = append(claims, slot{object, base + f, x.Size})
	}
	return claims
}

// file reports whether the change is of a cgroup file, by either way, and which
// block of fields sets the same group's files.
func (c *Change) file() (base abi.Field, yes bool) {
	if c.IsFile() {
		return abi.Resources, true
	}
	f, ok := c.resource()
	return c.Field - f, ok && f == abi.Unified
}
