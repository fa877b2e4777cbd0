package audit

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// maxText is how many bytes of a text a line has.
const maxText = 1 << 10

// line is what a line tells of an event. docs/operations.md has the meaning of its keys.
type line struct {
	event, plugin, hook string
	object              observe.Object
	more                []string // keys and their values, in turn
	limited             bool     // the plugin can make as many as it likes
}

// lineOf returns the line of an event; nil if the event is not audited.
func lineOf(e observe.Event) *line {
	of := func(event, plugin string, hook abi.Hook, object observe.Object, more ...string) *line {
		l := &line{event, plugin, "", object, more, plugin != ""}
		if hook != 0 && plugin != "" {
			l.hook = hook.String()
		}
		return l
	}
	rare := func(event, plugin string, more ...string) *line {
		return &line{event: event, plugin: plugin, more: more}
	}
	switch e := e.(type) {
	case *observe.FieldChanged:
		return of("changed", e.Plugin, e.Hook, e.Object,
			"other_name", e.OtherName, "other_id", e.OtherID, "field", e.Field, "old", e.Previous, "new", e.Value)
	case *observe.CallRefused:
		return of("refused", e.Plugin, e.Hook, e.Object, "code", e.Code, "reason", e.Reason)
	case *observe.CallExempted:
		return of("exempted", e.Plugin, e.Hook, e.Object, "reason", e.Reason)
	case *observe.Conflict:
		return of("conflict", e.Plugin, e.Hook, e.Object, "field", e.Field, "first", e.First)
	case *observe.DeferredUpdateFailed:
		return of("update_failed", e.Plugin, e.Hook, e.Object, "field", e.Field, "reason", e.Err.Error())
	case *observe.PluginFailed:
		return of("failed", e.Plugin, e.Hook, e.Object, "reason", e.Err.Error())
	case *observe.CgroupFileWritten:
		return of("cgroup_written", e.Plugin, e.Hook, e.Object, "field", e.File, "new", e.Value)
	case *observe.CgroupFileFailed:
		return of("cgroup_failed", e.Plugin, e.Hook, e.Object, "field", e.File, "new", e.Value, "reason", e.Err.Error())
	case *observe.CgroupFileRepaired:
		return of("cgroup_repaired", e.Plugin, 0, e.Object, "field", e.File, "old", e.Found, "new", e.Value)
	case *observe.CgroupFileFought:
		return of("cgroup_left", e.Plugin, 0, e.Object, "field", e.File, "old", e.Value, "new", e.Found)
	case *observe.CgroupFileUndone:
		return of("cgroup_undone", "", 0, e.Object, "field", e.File, "new", e.Value)
	case *observe.PluginLoaded:
		return rare("loaded", e.Plugin, "settings_digest", e.SettingsDigest, "new", e.Version)
	case *observe.PluginReplaced:
		return rare("replaced", e.Plugin, "settings_digest", e.SettingsDigest, "old", e.Previous, "new", e.Version)
	case *observe.PluginSettingsChanged:
		return rare("settings_changed", e.Plugin, "settings_digest", e.SettingsDigest)
	case *observe.PluginRejected:
		return rare("load_failed", e.Plugin, "reason", e.Err.Error())
	case *observe.PluginRemoved:
		if e.Disabled {
			return rare("disabled", e.Plugin)
		}
		return rare("removed", e.Plugin)
	case *observe.BypassOn:
		return rare("bypass_on", "", "reason", e.Reason)
	case *observe.BypassOff:
		return rare("bypass_off", "")
	}
	return nil
}

// text returns the line of an entry, with its end. dropped is how many lines of the plugin were left out before it.
func (e entry) text(dropped int) []byte {
	l := e.line
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
	handler := slog.NewJSONHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.LevelKey:
			return slog.Attr{}
		case slog.MessageKey:
			a.Key = "event"
		}
		return a
	}})
	_ = handler.Handle(context.Background(), r) // texts and a buffer: it cannot fail
	return plugin.PrintableJSON(text.Bytes())
}
