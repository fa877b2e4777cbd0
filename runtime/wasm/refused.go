package wasm

import (
	"log/slog"
	"slices"
	"strconv"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// refused logs that a host function answered an error, for who wants to know as much
// of a plugin. That something is not there is an answer as good as others.
func (f *frame) refused(errno abi.Errno) {
	if errno == abi.NotFound {
		return
	}
	f.output.log.LogAttrs(f.output.ctx, slog.LevelDebug, "host function refused", f.output.about(),
		slog.String("function", f.name), slog.String("target", f.target()), slog.String("err", errno.Error()))
}

// target names what the function was called for, such as container.env["HOME"], as
// far as its arguments tell.
func (f *frame) target() string {
	i := slices.IndexFunc(abi.Functions, func(row abi.Function) bool { return row.Name == f.name })
	if i < 0 {
		return ""
	}
	text, object := "", abi.Object(0)
	for n, p := range abi.Functions[i].Params {
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
				text += "[" + strconv.Quote(said(f.adj, b, maxTail)) + "]"
			}
		}
	}
	return text
}
