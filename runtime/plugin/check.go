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
	if c.size() > maxValue || a.bytes+c.size() > maxTotal {
		return refused(c, abi.TooLarge, fmt.Sprintf("more than %d KiB of key and value, or %d KiB of all changes of the call", maxValue>>10, maxTotal>>10))
	}
	if c.Op == WriteFile {
		return a.checkFile(c)
	}
	info := FieldOf(c.Kind(), c.Field)
	if info == nil {
		return refused(c, abi.NotFound, "no field "+strconv.Itoa(int(c.Field)))
	}
	if !c.Op.fits(info.Type) {
		return refused(c, abi.Invalid, "the field is of type "+info.Type.String())
	}
	if err := a.permit(c); err != nil {
		return err
	}
	if !a.writable(c, info.Writable, abi.HandleWritable(*info)) {
		return refused(c, abi.ReadOnly, a.readOnly(c, info.Writable))
	}
	if c.Op == DeleteEntry && c.Object >= abi.FirstHandle {
		return refused(c, abi.Unsupported, "an update of another container adds to what it has")
	}
	if !c.encodable() {
		return refused(c, abi.Invalid, "want UTF-8")
	}
	if info.Type == abi.Set {
		return checkElement(c)
	}
	if f, ok := c.resource(); ok && f == abi.Unified {
		return a.checkUnified(c)
	}
	if errno, reason := a.checkValue(c); errno != abi.OK {
		return refused(c, errno, reason)
	}
	return nil
}

func refused(c *Change, errno abi.Errno, reason string) error {
	return &WriteError{Target: c.Target(), Errno: errno, Reason: reason}
}

// quoted shows a value that was refused.
func quoted(value string) string { return strconv.Quote(Printable(value, maxShown)) }

const maxShown = 64 // bytes of a value in an error

// permit refuses a change that needs what the plugin has not.
func (a *Adjustment) permit(c *Change) error {
	if lacks := a.Lacks(c.needs()); lacks != "" {
		return refused(c, abi.Denied, lacks)
	}
	return nil
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

// writable reports whether the change may be made in this hook: hooks are those
// for the event's own object, and handles tells whether it may be on a handle.
// What a call that is still to be forwarded is about is changed in the call.
func (a *Adjustment) writable(c *Change, hooks abi.HookSet, handles bool) bool {
	if c.Object < abi.FirstHandle {
		return hooks.Has(a.hook)
	}
	switch a.hook.Info().Asked {
	case abi.Before:
		return handles && !a.event.Own(c.Object)
	case abi.After, abi.Apart:
		return handles
	}
	return false
}

// readOnly says where a change may be made that may not be made here.
func (a *Adjustment) readOnly(c *Change, hooks abi.HookSet) string {
	switch {
	case c.Object < abi.FirstHandle && hooks == 0:
		return "no hook can change it"
	case c.Object < abi.FirstHandle:
		return a.hook.String() + " cannot change it, only " + strings.Join(hooks.Names(), ", ")
	case a.event.Own(c.Object) && a.hook.Info().Asked == abi.Before:
		return "it is the event's own, which is changed as object " + strconv.Itoa(int(c.Of))
	case a.hook.Info().Asked == abi.Leaving:
		return a.hook.String() + " cannot change anything"
	}
	return "of other pods and containers only cgroup files and the resources of containers can be changed"
}

func (a *Adjustment) checkFile(c *Change) error {
	if c.Object >= abi.FirstHandle && c.Of == 0 {
		return refused(c, abi.NotFound, "no such handle")
	}
	if err := a.permit(c); err != nil {
		return err
	}
	if hooks := abi.CgroupWritable(c.Object); !a.writable(c, hooks, true) {
		return refused(c, abi.ReadOnly, a.readOnly(c, hooks))
	}
	if a.files == nil {
		return refused(c, abi.Unsupported, "this node has no cgroup file system that the proxy may write to")
	}
	return a.parse(c, rules.CgroupSet)
}

// parse brings a value for a cgroup file into its normal form, in which two ways to write
// one value are equal.
func (a *Adjustment) parse(c *Change, way rules.Ways) (err error) {
	set := rules.Set(a.files.Version())
	if c.Op == DeleteEntry {
		err = set.Check(way, c.Kind(), c.Key)
	} else {
		c.Text, err = set.Parse(way, c.Kind(), c.Key, c.Text)
	}
	var why *rules.Error
	if errors.As(err, &why) {
		return refused(c, why.Code, why.Reason())
	}
	return err
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
	return false
}

// checkValue is for all types but abi.Set.
func (a *Adjustment) checkValue(c *Change) (abi.Errno, string) {
	if f, ok := c.resource(); ok {
		return a.checkResource(f, c)
	}
	switch {
	case c.Op == SetInt64:
		return checkID(c.Int) // run_as_user and run_as_group
	case c.Op == SetList:
		return checkArguments(c)
	case c.Kind() == abi.Pod && c.Field == abi.PodCgroupParent:
		return checkCgroupParent(c.Text, a.event)
	case c.Op == SetText:
		return checkText(c)
	case c.isEnv():
		return checkEnv(c)
	}
	return checkMetadata(c) // labels and annotations
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

func (a *Adjustment) checkResource(f abi.Field, c *Change) (abi.Errno, string) {
	switch f {
	case abi.CpusetCpus, abi.CpusetMems:
		return checkCpuset(c.Text)
	case abi.HugepageLimits:
		return checkHugepages(c)
	}
	return checkInt64(f, c.Int)
}

// bounds are the inclusive ranges that the kernel and runc take; -1 where it means
// "unlimited". What is not among them has none.
var bounds = [...]struct {
	min, max  int64
	unlimited bool
}{
	abi.CPUPeriod:   {1_000, 1_000_000, false},
	abi.CPUQuota:    {1_000, 1<<44 - 1, true},
	abi.CPUShares:   {2, 262_144, false},
	abi.MemoryLimit: {1, 1<<63 - 1, true},
	abi.MemorySwap:  {1, 1<<63 - 1, true},
	abi.OOMScoreAdj: {-1_000, 1_000, false},
}

func checkInt64(f abi.Field, v int64) (abi.Errno, string) {
	if f < 0 || int(f) >= len(bounds) {
		return abi.OK, ""
	}
	b := &bounds[f]
	if b.max == 0 || v >= b.min && v <= b.max || v == -1 && b.unlimited {
		return abi.OK, ""
	}
	reason := fmt.Sprintf("%d: want %d to %d", v, b.min, b.max)
	if info := FieldOf(abi.Container, abi.Resources+f); info.Unit != "" {
		reason += " " + info.Unit
	}
	if b.unlimited {
		reason += ", or -1 for no limit"
	}
	return abi.Invalid, reason
}

// checkCpuset takes the kernel's list format, "0-3,7"; empty is no restriction.
func checkCpuset(list string) (abi.Errno, string) {
	if list == "" || rules.IsList(list) {
		return abi.OK, ""
	}
	return abi.Invalid, quoted(list) + ": want numbers and ranges such as 0-3,7"
}

func checkHugepages(c *Change) (abi.Errno, string) {
	if !rules.IsPageSize(c.Key) {
		return abi.Invalid, "want a page size such as 2MB or 1GB"
	}
	if _, err := strconv.ParseUint(c.Text, 10, 64); c.Op == SetEntry && err != nil {
		return abi.Invalid, quoted(c.Text) + ": want a number of bytes"
	}
	return abi.OK, ""
}

// checkUnified holds a key of the unified map to the same table as cgroup_set: the runtime
// writes it to the container's cgroup as root, whatever it is.
func (a *Adjustment) checkUnified(c *Change) error {
	if a.files == nil {
		return refused(c, abi.Unsupported, "unified needs cgroup v2")
	}
	return a.parse(c, rules.Unified)
}

func checkEnv(c *Change) (abi.Errno, string) {
	if c.Key == "" || strings.ContainsAny(c.Key, "=\x00") {
		return abi.Invalid, "want a name of an environment variable, without = and NUL bytes"
	}
	if strings.ContainsRune(c.Text, 0) {
		return abi.Invalid, "want a value without NUL bytes"
	}
	return abi.OK, ""
}

func checkMetadata(c *Change) (abi.Errno, string) {
	switch {
	case c.Key == "" || strings.ContainsRune(c.Key, 0):
		return abi.Invalid, "want a key of one byte or more, without NUL bytes"
	case strings.HasPrefix(c.Key, reserved):
		return abi.Denied, "keys that begin with " + reserved + " are kubelet's"
	}
	return abi.OK, ""
}
