package plugin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// reserved is the prefix of the labels and annotations by which kubelet finds
// its own pods and containers again.
const reserved = "io.kubernetes."

// check says whether c may be made in this hook, whatever other plugins do, and
// brings it into its normal form.
func (a *Adjustment) check(c *Change) error {
	if adds := c.Op != Withdraw; adds && (c.size() > maxValue || a.bytes+c.size() > maxTotal) {
		return refused(c, abi.TooLarge, fmt.Sprintf("more than %d KiB of key and value, or %d KiB of all changes of the call", maxValue>>10, maxTotal>>10))
	}
	if _, ok := c.Object.OfQOSClass(); ok {
		return refused(c, abi.ReadOnly, "the cgroup of a QoS class belongs to kubelet, and plugins can only read it")
	}
	if c.IsFile() {
		return a.checkFile(c)
	}
	info := FieldOf(c.Kind(), c.Field)
	if info == nil {
		return refused(c, abi.NotFound, "no field "+strconv.Itoa(int(c.Field)))
	}
	if !c.Op.fits(info.Type) {
		return refused(c, abi.Invalid, "the field is of type "+info.Type.String())
	}
	if keyed := info.Type == abi.Map || info.Type == abi.Set; c.Op == Withdraw && keyed != (c.Key != "") {
		return refused(c, abi.Invalid, "the field is of type "+info.Type.String()+"; maps and sets take a key, and others none")
	}
	if err := a.allow(c, info.Writable, abi.HandleWritable(*info)); err != nil || c.Op == Withdraw {
		return err
	}
	if c.Op == DeleteEntry && c.Object >= abi.FirstHandle {
		return refused(c, abi.Unsupported, "an update of another container adds to what it has")
	}
	if !c.encodable() {
		return refused(c, abi.Invalid, "want UTF-8")
	}
	if info.Type == abi.Set {
		return a.checkElement(c, info)
	}
	if err := a.checkFormat(c, info); err != nil {
		return err
	}
	return a.checkPodLimit(c)
}

// allow refuses a change that the plugin may not make, or not in this hook: hooks are those for the event's own object, and
// handles tells whether it may be on a handle. What a call that is still to be forwarded is about is changed in the call.
func (a *Adjustment) allow(c *Change, hooks abi.HookSet, handles bool) error {
	if err := a.permit(c); err != nil {
		return err
	}
	writable := false
	switch phase := a.hook.Info().Phase; {
	case c.Object < abi.FirstHandle:
		writable = hooks.Has(a.hook)
	case phase == abi.Before:
		writable = handles && !a.event.Own(c.Object)
	case phase == abi.After, phase == abi.Standalone:
		writable = handles
	}
	if !writable {
		return refused(c, abi.ReadOnly, a.readOnly(c, hooks))
	}
	return nil
}

func (a *Adjustment) checkFormat(c *Change, info *abi.FieldInfo) error {
	check := formats[info.Format]
	if check == nil {
		return nil
	}
	if errno, reason := check(a, c); errno != abi.OK {
		return refused(c, errno, reason)
	}
	return nil
}

func refused(c *Change, errno abi.Errno, reason string) error {
	shown := *c
	shown.Key = shown.Key[:min(len(shown.Key), maxReason)]
	return &WriteError{Target: shown.Target(), Errno: errno, Reason: reason}
}

// quoted shows a value that was refused.
func quoted(value string) string { return strconv.Quote(Printable(value, maxShown)) }

const maxShown = 64 // bytes of a value in an error

// permit refuses a change that needs what the plugin has not, or that is outside of its bounds.
func (a *Adjustment) permit(c *Change) error {
	if lacks := a.Lacks(c.needs()); lacks != "" {
		return refused(c, abi.Denied, lacks)
	}
	return a.checkBounds(c)
}

// permitAll looks again at all changes of a plugin, before any is applied.
func (a *Adjustment) permitAll() error {
	for i := range a.changes {
		if err := a.permit(&a.changes[i].Change); err != nil {
			return err
		}
	}
	return nil
}

// readOnly says where a change may be made that may not be made here.
func (a *Adjustment) readOnly(c *Change, hooks abi.HookSet) string {
	switch {
	case c.Object < abi.FirstHandle && hooks == 0:
		return "no hook can change it"
	case c.Object < abi.FirstHandle:
		return a.hook.String() + " cannot change it, only " + strings.Join(hooks.Names(), ", ")
	case a.event.Own(c.Object) && a.hook.Info().Phase == abi.Before:
		return "it is the event's own, which is changed as object " + strconv.Itoa(int(c.Of))
	case a.hook.Info().Phase == abi.BeforeNoReject:
		return a.hook.String() + " cannot change anything"
	}
	return "of other pods and containers only cgroup files and the resources of containers can be changed"
}

func (a *Adjustment) checkFile(c *Change) error {
	if c.Object >= abi.FirstHandle && c.Of == 0 {
		return refused(c, abi.NotFound, "no such handle")
	}
	if err := a.allow(c, abi.CgroupWritable(c.Object), true); err != nil || c.Op == Withdraw {
		return err
	}
	if a.files == nil {
		return refused(c, abi.Unsupported, "this node has no cgroup file system that the proxy may write to")
	}
	if errno, reason := a.parse(c, rules.CgroupSet); errno != abi.OK {
		return refused(c, errno, reason)
	}
	return a.checkPodLimit(c)
}

// parse brings a value for a cgroup file into its normal form, in which two ways to write
// one value are equal.
func (a *Adjustment) parse(c *Change, way rules.Ways) (abi.Errno, string) {
	var err error
	set := rules.Set(a.files.Version())
	if c.Op == DeleteEntry {
		err = set.Check(way, c.Kind(), c.Key)
	} else {
		c.Text, err = set.Parse(way, c.Kind(), c.Key, c.Text)
	}
	var why *rules.Error
	if errors.As(err, &why) {
		return why.Code, why.Reason()
	}
	return abi.OK, ""
}

// encodable reports whether a message can hold the change: protobuf takes no
// string that is not UTF-8. The value of an environment variable is bytes.
func (c *Change) encodable() bool {
	return utf8.ValidString(c.Key) && (c.isEnv() || utf8.ValidString(c.Text))
}

// fits reports whether the operation is one for fields of type t.
func (op Op) fits(t abi.Type) bool {
	switch op {
	case SetInt64:
		return t == abi.Int64
	case SetText:
		return t == abi.String
	case SetEntry, DeleteEntry:
		return t == abi.Map
	case SetList:
		return t == abi.List
	case AddElement, DeleteElement:
		return t == abi.Set
	}
	return op == Withdraw
}

// resource returns the field of LinuxContainerResources that the change sets, of
// a container or of a pod's overhead or sum.
func (c *Change) resource() (abi.Field, bool) {
	switch {
	case c.Kind() == abi.Event:
		return 0, false
	case c.Field >= abi.Resources:
		return c.Field - abi.Resources, true
	case c.Field >= abi.Overhead && c.Kind() == abi.Pod:
		return c.Field - abi.Overhead, true
	}
	return 0, false
}
