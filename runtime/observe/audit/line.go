package audit

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// maxText is how many bytes of a text a line has.
const maxText = 1 << 10

// audited reports whether an event is a line, and returns the plugin that can make as many as it likes; "" if
// none can.
func audited(e observe.Event) (maker string, ok bool) {
	switch e := e.(type) {
	case *observe.FieldChanged:
		return e.Plugin, true
	case *observe.CallRefused:
		return e.Plugin, true
	case *observe.CallExempted:
		return e.Plugin, true
	case *observe.PluginFailed:
		return e.Plugin, true
	case *observe.Conflict:
		return e.Plugin, true
	case *observe.DeferredUpdateFailed:
		return e.Plugin, true
	case *observe.CgroupFileWritten:
		return e.Plugin, true
	case *observe.CgroupFileFailed:
		return e.Plugin, true
	case *observe.CgroupFileRepaired:
		return e.Plugin, true
	case *observe.CgroupFileFought:
		return e.Plugin, true
	case *observe.CgroupFileUndone, *observe.BypassOn, *observe.BypassOff, *observe.PluginLoaded, *observe.PluginReplaced,
		*observe.PluginSettingsChanged, *observe.PluginRejected, *observe.PluginRemoved:
		return "", true
	}
	return "", false
}

// line is what a line tells of an event. docs/operations.md has the meaning of its keys.
type line struct {
	event, plugin, hook string
	object              observe.Object
	more                []string // keys and their values, in turn
}

// of returns what an event tells that is audited.
func of(e observe.Event) line {
	var none observe.Object
	switch e := e.(type) {
	case *observe.FieldChanged:
		return line{"changed", e.Plugin, e.Hook.String(), e.Object,
			[]string{"other_name", e.OtherName, "other_id", e.OtherID, "field", e.Field, "old", e.Previous, "new", e.Value}}
	case *observe.CallRefused:
		return line{"refused", e.Plugin, e.Hook.String(), e.Object, []string{"code", e.Code, "reason", e.Reason}}
	case *observe.CallExempted:
		return line{"exempted", e.Plugin, e.Hook.String(), e.Object, []string{"reason", e.Reason}}
	case *observe.Conflict:
		return line{"conflict", e.Plugin, e.Hook.String(), e.Object, []string{"field", e.Field, "first", e.First}}
	case *observe.DeferredUpdateFailed:
		return line{"update_failed", e.Plugin, e.Hook.String(), e.Object, []string{"field", e.Field, "reason", e.Err.Error()}}
	case *observe.PluginFailed:
		return line{"failed", e.Plugin, e.Hook.String(), e.Object, []string{"reason", e.Err.Error()}}
	case *observe.CgroupFileWritten:
		return line{"cgroup_written", e.Plugin, e.Hook.String(), e.Object, []string{"field", e.File, "new", e.Value}}
	case *observe.CgroupFileFailed:
		hook := ""
		if e.Plugin != "" {
			hook = e.Hook.String()
		}
		return line{"cgroup_failed", e.Plugin, hook, e.Object, []string{"field", e.File, "new", e.Value, "reason", e.Err.Error()}}
	case *observe.CgroupFileRepaired:
		return line{"cgroup_repaired", e.Plugin, "", e.Object, []string{"field", e.File, "old", e.Found, "new", e.Value}}
	case *observe.CgroupFileFought:
		return line{"cgroup_left", e.Plugin, "", e.Object, []string{"field", e.File, "old", e.Value, "new", e.Found}}
	case *observe.CgroupFileUndone:
		return line{"cgroup_undone", "", "", e.Object, []string{"field", e.File, "new", e.Value}}
	case *observe.PluginLoaded:
		return line{"loaded", e.Plugin, "", none, []string{"settings_digest", e.SettingsDigest, "new", e.Version}}
	case *observe.PluginReplaced:
		return line{"replaced", e.Plugin, "", none, []string{"settings_digest", e.SettingsDigest, "old", e.Previous, "new", e.Version}}
	case *observe.PluginSettingsChanged:
		return line{"settings_changed", e.Plugin, "", none, []string{"settings_digest", e.SettingsDigest}}
	case *observe.PluginRejected:
		return line{"load_failed", e.Plugin, "", none, []string{"reason", e.Err.Error()}}
	case *observe.PluginRemoved:
		if e.Disabled {
			return line{"disabled", e.Plugin, "", none, nil}
		}
		return line{"removed", e.Plugin, "", none, nil}
	case *observe.BypassOn:
		return line{"bypass_on", "", "", none, []string{"reason", e.Reason, "by", e.By}}
	case *observe.BypassOff:
		return line{"bypass_off", "", "", none, []string{"by", e.By}}
	}
	return line{}
}

// lineOf returns the line of an event that is audited, with its end. dropped is how many lines of the plugin were left
// out before it.
func lineOf(e entry, dropped int) []byte {
	l := of(e.event)
	texts := append([]string{
		"trace_id", e.trace, "namespace", l.object.Namespace, "pod", l.object.Pod, "pod_id", l.object.PodID,
		"container", l.object.Container, "container_id", l.object.ContainerID, "image", l.object.Image,
		"plugin", l.plugin, "digest", e.digest, "hook", l.hook,
	}, l.more...)
	r, cut := slog.NewRecord(e.at.UTC(), slog.LevelInfo, l.event, 0), 0
	for pair := range slices.Chunk(texts, 2) {
		value := pair[1]
		if n := len(value) - maxText; n > 0 {
			value, cut = strings.ToValidUTF8(value[:maxText], ""), cut+n
		}
		if value != "" {
			r.AddAttrs(slog.String(pair[0], value))
		}
	}
	if cut > 0 {
		r.AddAttrs(slog.Int("cut", cut))
	}
	if dropped > 0 {
		r.AddAttrs(slog.Int("dropped", dropped))
	}
	var text bytes.Buffer
	handler := slog.NewJSONHandler(&text, &slog.HandlerOptions{ReplaceAttr: keyOf})
	_ = handler.Handle(context.Background(), r) // texts and a buffer: it cannot fail
	return plugin.PrintableJSON(text.Bytes())
}

// keyOf leaves out the level, and makes the message the event.
func keyOf(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.LevelKey:
		return slog.Attr{}
	case slog.MessageKey:
		a.Key = "event"
	}
	return a
}
