package plugin

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
)

// reserved is the prefix of the labels and annotations by which kubelet finds
// its own pods and containers again.
const reserved = "io.kubernetes."

// check says whether c may be made in this hook, whatever other plugins do, and
// brings it into its normal form.
func (a *Adjustment) check(c *Change) error {
	if c.size() > maxValue || a.bytes+c.size() > maxTotal {
		return refused(c, abi.TooLarge, "")
	}
	if c.Op == WriteFile {
		return a.checkFile(c)
	}
	info := FieldOf(c.Kind(), c.Field)
	if info == nil {
		return refused(c, abi.NotFound, "no field "+strconv.Itoa(int(c.Field)))
	}
	if !c.Op.fits(info.Type) {
		return refused(c, abi.Invalid, "not of the field's type")
	}
	if err := permit(c, a.has); err != nil {
		return err
	}
	if !a.writable(c, info.Writable, abi.HandleWritable(*info)) {
		return refused(c, abi.ReadOnly, "in "+a.hook.String())
	}
	if c.Op == DeleteEntry && c.Object >= abi.FirstHandle {
		return refused(c, abi.Unsupported, "an update of another container adds to what it has")
	}
	if !c.encodable() {
		return refused(c, abi.Invalid, "not UTF-8")
	}
	if info.Type == abi.Set {
		return checkElement(c)
	}
	if errno, reason := a.checkValue(c); errno != abi.OK {
		return refused(c, errno, reason)
	}
	return nil
}

func refused(c *Change, errno abi.Errno, reason string) error {
	return &WriteError{Target: c.Target(), Errno: errno, Reason: reason}
}

// permit refuses a change that needs what the plugin has not.
func permit(c *Change, has abi.CapabilitySet) error {
	if missing := c.needs() &^ has; missing != 0 {
		return refused(c, abi.Denied, "the plugin has not "+strings.Join(missing.Names(), ", "))
	}
	return nil
}

// permitAll looks again at all changes of a plugin, before any is applied.
func permitAll(changes []Owned, has abi.CapabilitySet) error {
	for i := range changes {
		if err := permit(&changes[i].Change, has); err != nil {
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

func (a *Adjustment) checkFile(c *Change) error {
	if c.Object >= abi.FirstHandle && c.Of == 0 {
		return refused(c, abi.NotFound, "no such handle")
	}
	if err := permit(c, a.has); err != nil {
		return err
	}
	if !a.writable(c, abi.CgroupWritable(c.Object), true) {
		return refused(c, abi.ReadOnly, "in "+a.hook.String())
	}
	if a.files == nil {
		return refused(c, abi.Unsupported, "no cgroup file system")
	}
	value, err := a.files.Parse(c.Key, c.Text)
	if err != nil {
		return err
	}
	c.Text = value
	return nil
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
	case abi.Unified:
		return a.checkUnified(c.Key)
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
	abi.CPUQuota:    {1_000, 1 << 44, true},
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
	return abi.Invalid, strconv.FormatInt(v, 10) + " is outside " + strconv.FormatInt(b.min, 10) + "…" + strconv.FormatInt(b.max, 10)
}

// checkCpuset takes the kernel's list format, "0-3,7"; empty is no restriction.
func checkCpuset(list string) (abi.Errno, string) {
	if list == "" {
		return abi.OK, ""
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from > to {
			return abi.Invalid, strconv.Quote(list) + " is not a list of numbers and ranges"
		}
	}
	return abi.OK, ""
}

func checkHugepages(c *Change) (abi.Errno, string) {
	size, unit := strings.CutSuffix(c.Key, "B")
	if !unit || len(size) < 2 || !strings.ContainsAny(size[len(size)-1:], "KMG") {
		return abi.Invalid, "page size is written like 2MB or 1GB"
	}
	if _, err := strconv.ParseUint(size[:len(size)-1], 10, 32); err != nil {
		return abi.Invalid, "page size is written like 2MB or 1GB"
	}
	if _, err := strconv.ParseUint(c.Text, 10, 64); c.Op == SetEntry && err != nil {
		return abi.Invalid, "limit is a number of bytes"
	}
	return abi.OK, ""
}

// checkUnified refuses the unified map on cgroup v1, where runc fails the whole container for it.
func (a *Adjustment) checkUnified(file string) (abi.Errno, string) {
	if a.files == nil || a.files.Version() != 2 {
		return abi.Unsupported, "unified needs cgroup v2"
	}
	if !strings.Contains(file, ".") || strings.ContainsAny(file, "/\x00\n") {
		return abi.Invalid, "not the name of a cgroup v2 file"
	}
	return abi.OK, ""
}

func checkEnv(c *Change) (abi.Errno, string) {
	if c.Key == "" || strings.ContainsAny(c.Key, "=\x00") {
		return abi.Invalid, "not the name of an environment variable"
	}
	if strings.ContainsRune(c.Text, 0) {
		return abi.Invalid, "value holds a NUL byte"
	}
	return abi.OK, ""
}

func checkCgroupParent(parent string) (abi.Errno, string) {
	absolute := strings.HasPrefix(parent, "/") && parent == path.Clean(parent)
	slice := strings.HasSuffix(parent, ".slice") && !strings.Contains(parent, "/")
	if !absolute && !slice || strings.ContainsRune(parent, 0) {
		return abi.Invalid, "neither an absolute, clean path nor a systemd slice"
	}
	return abi.OK, ""
}

func checkMetadata(c *Change) (abi.Errno, string) {
	switch {
	case c.Key == "" || strings.ContainsRune(c.Key, 0):
		return abi.Invalid, "not a key"
	case strings.HasPrefix(c.Key, reserved):
		return abi.Denied, "keys under " + reserved + " are kubelet's"
	}
	return abi.OK, ""
}
