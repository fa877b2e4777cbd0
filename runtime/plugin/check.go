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

// scope is what a plugin may do in one call: each change is held to it by itself, whatever the others are.
type scope struct {
	of    *Member // the plugin's place; not to be changed
	hook  abi.Hook
	event Event // whose handles there are; nil: none

	cgroupVersion int // 0: there are no cgroup files that the proxy may write to
}

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
		if c.Object >= abi.FirstHandle && c.Of == 0 {
			return refused(c, abi.NotFound, "no such handle")
		}
		if err := a.allow(c, abi.CgroupWritable(c.Object), true); err != nil || c.Op == Withdraw {
			return err
		}
		if a.cgroupVersion == 0 {
			return refused(c, abi.Unsupported, "this node has no cgroup file system that the proxy may write to")
		}
		if err := a.parse(c, rules.CgroupSet); err != nil {
			return err
		}
		return a.checkPodLimit(c)
	}

	info := FieldOf(c.Kind(), c.Field)
	if info == nil {
		return refused(c, abi.NotFound, "no field "+strconv.Itoa(int(c.Field)))
	}
	if c.Op != Withdraw && opTypes[c.Op] != info.Type {
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
	if !utf8.ValidString(c.Key) || !c.isEnv() && !utf8.ValidString(c.Text) { // as protobuf wants; the value of a variable is bytes
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
func (s *scope) allow(c *Change, hooks abi.HookSet, handles bool) error {
	if err := s.permit(c); err != nil {
		return err
	}
	writable := false
	switch phase := s.hook.Info().Phase; {
	case c.Object < abi.FirstHandle:
		writable = hooks.Has(s.hook)
	case phase == abi.Before:
		writable = handles && !s.event.Own(c.Object)
	case phase == abi.After, phase == abi.Standalone:
		writable = handles
	}
	if writable {
		return nil
	}
	where := "of other pods and containers only cgroup files and the resources of containers can be changed"
	switch {
	case c.Object < abi.FirstHandle && hooks == 0:
		where = "no hook can change it"
	case c.Object < abi.FirstHandle:
		where = s.hook.String() + " cannot change it, only " + strings.Join(hooks.Names(), ", ")
	case s.event.Own(c.Object) && s.hook.Info().Phase == abi.Before:
		where = "it is the event's own, which is changed as object " + strconv.Itoa(int(c.Of))
	case s.hook.Info().Phase == abi.BeforeNoReject:
		where = s.hook.String() + " cannot change anything"
	}
	return refused(c, abi.ReadOnly, where)
}

func (s *scope) checkFormat(c *Change, info *abi.FieldInfo) error {
	if check := formats[info.Format]; check != nil {
		return check(s, c)
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

// permit refuses a change that needs what the plugin has not, or one by a handle of what is outside of the operator's match,
// however the plugin got it.
func (s *scope) permit(c *Change) error {
	var needs abi.CapabilitySet
	if c.Object >= abi.FirstHandle {
		needs = abi.CapabilitySetOf(abi.UpdateOthers)
	}
	info := FieldOf(c.Kind(), c.Field)
	switch {
	case c.IsFile():
		needs |= abi.CapabilitySetOf(abi.CgroupWrite)
	case info != nil && info.Writing != 0:
		needs |= abi.CapabilitySetOf(info.Writing)
	}
	if lacks := s.Lacks(needs); lacks != "" {
		return refused(c, abi.Denied, lacks)
	}
	if s.of.Bounds != nil && c.Of != 0 && !s.event.Within(c.Object, s.of.Bounds) {
		return refused(c, abi.Denied, "it is outside of the operator's match")
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

// parse brings a value for a cgroup file into its normal form, in which two ways to write
// one value are equal.
func (s *scope) parse(c *Change, way rules.Ways) error {
	var err error
	set := rules.Set(s.cgroupVersion)
	if c.Op == DeleteEntry {
		err = set.Check(way, c.Kind(), c.Key)
	} else {
		c.Text, err = set.Parse(way, c.Kind(), c.Key, c.Text)
	}
	var why *rules.Error
	if errors.As(err, &why) {
		return refused(c, why.Code, why.Reason())
	}
	return nil
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
