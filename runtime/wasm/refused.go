package wasm

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// refused notes that a host function answered an error: the guest gets a number, and the
// reason is for the error that the guest may end with. That something is not there is an
// answer as good as others.
func (f *frame) refused(ctx context.Context, errno abi.Errno) {
	why := f.adj.Refusal()
	if why == nil && errno == abi.NotFound {
		return
	}
	target, wanted := "", f.observer().Wants(observe.KindHostCallRefused)
	if why == nil || wanted {
		target = f.target()
	}
	if why == nil {
		why = &plugin.WriteError{Target: strings.TrimSpace(f.name + " " + target), Errno: errno, Reason: f.lacking(errno)}
		if errno != abi.Conflict { // the chain reports it
			f.adj.Refused(why)
			f.adj.Refusal() // it is reported here
		}
	}
	if !wanted {
		return
	}
	text := errno.Error()
	if why.Reason != "" {
		text += ": " + f.adj.Sanitize(why.Reason, maxReason)
	}
	hook, _, about := f.about()
	f.observer().Observe(ctx, &observe.HostCallRefused{
		Plugin: f.of.id, Hook: hook, Object: about, Function: f.name, Target: target, Err: text,
	})
}

// lacking says why the function was denied that asked for no change.
func (f *frame) lacking(errno abi.Errno) string {
	if f.row == nil || errno != abi.Denied {
		return ""
	}
	needs := abi.CapabilitySetOf(f.row.Needs)
	if i := slices.IndexFunc(f.row.Params, func(p abi.Param) bool { return p.Name == "field" }); i > 0 {
		if info := plugin.FieldOf(f.event.Kind(f.object(0)), f.field(i)); info != nil {
			needs |= abi.CapabilitySetOf(info.Reading)
		}
	}
	if lacks := f.adj.Lacks(needs); lacks != "" {
		return lacks
	}
	if f.name == "cgroup_get" || f.name == "cgroup_read" {
		return "no plugin may read this file"
	}
	return ""
}

// target names what the function was called for, such as container.env["HOME"], as
// far as its arguments name it.
func (f *frame) target() string {
	if f.row == nil {
		return ""
	}
	text, object := "", abi.Object(0)
	for n, p := range f.row.Params {
		switch p.Name {
		case "object":
			object = f.event.Kind(f.object(n))
			text = object.String()
		case "field":
			if info := plugin.FieldOf(object, f.field(n)); info != nil {
				text += "." + info.Name
			} else {
				text += ".field " + strconv.Itoa(int(f.field(n)))
			}
		case "key", "file", "name":
			if b, ok := f.memory.Read(uint32(f.stack[n]), uint32(f.stack[n+1])); ok {
				text += "[" + strconv.Quote(sanitize(f.adj, b, maxTail)) + "]"
			}
		}
	}
	return text
}
