package audit

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// maxText is how many bytes of a text a line has.
const maxText = 1 << 10

// line is a line of the log. docs/operations.md has the meaning of its keys.
type line struct {
	Time        time.Time `json:"time"`
	Event       string    `json:"event"`
	TraceID     string    `json:"trace_id,omitempty"`
	Namespace   string    `json:"namespace,omitempty"`
	Pod         string    `json:"pod,omitempty"`
	PodID       string    `json:"pod_id,omitempty"`
	Container   string    `json:"container,omitempty"`
	ContainerID string    `json:"container_id,omitempty"`
	Image       string    `json:"image,omitempty"`
	Plugin      string    `json:"plugin,omitempty"`
	Digest      string    `json:"digest,omitempty"`
	Settings    string    `json:"settings_digest,omitempty"`
	Hook        string    `json:"hook,omitempty"`
	OtherName   string    `json:"other_name,omitempty"`
	OtherID     string    `json:"other_id,omitempty"`
	Field       string    `json:"field,omitempty"`
	Old         string    `json:"old,omitempty"`
	New         string    `json:"new,omitempty"`
	First       string    `json:"first,omitempty"`
	Code        string    `json:"code,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	By          string    `json:"by,omitempty"`
	Cut         int       `json:"cut,omitempty"`
	Dropped     int       `json:"dropped,omitempty"`
}

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

// lineOf returns the line of an event that is audited, with its end. dropped is how many lines of the plugin were left
// out before it.
func lineOf(e entry, dropped int) []byte {
	l := line{Time: e.at.UTC(), TraceID: e.trace, Digest: e.digest, Dropped: dropped}
	switch e := e.event.(type) {
	case *observe.FieldChanged:
		l.about("changed", e.Plugin, e.Hook.String(), e.Object)
		l.OtherName, l.OtherID, l.Field, l.Old, l.New = e.OtherName, e.OtherID, e.Field, e.Previous, e.Value
	case *observe.CallRefused:
		l.about("refused", e.Plugin, e.Hook.String(), e.Object)
		l.Code, l.Reason = e.Code, e.Reason
	case *observe.CallExempted:
		l.about("exempted", e.Plugin, e.Hook.String(), e.Object)
		l.Reason = e.Reason
	case *observe.Conflict:
		l.about("conflict", e.Plugin, e.Hook.String(), e.Object)
		l.First, l.Field = e.First, e.Field
	case *observe.DeferredUpdateFailed:
		l.about("update_failed", e.Plugin, e.Hook.String(), e.Object)
		l.Field, l.Reason = e.Field, e.Err.Error()
	case *observe.PluginFailed:
		l.about("failed", e.Plugin, e.Hook.String(), e.Object)
		l.Reason = e.Err.Error()
	default:
		l.file(e)
		l.operator(e)
	}
	for _, text := range []*string{&l.Field, &l.Old, &l.New, &l.Reason, &l.Namespace, &l.Pod, &l.Container, &l.Image, &l.OtherName} {
		if n := len(*text) - maxText; n > 0 {
			*text, l.Cut = strings.ToValidUTF8((*text)[:maxText], ""), l.Cut+n
		}
	}
	text, _ := json.Marshal(l) // texts alone: it cannot fail
	text = plugin.PrintableJSON(text)
	return append(text, '\n')
}

// file completes the line of an event of a cgroup file.
func (l *line) file(e observe.Event) {
	switch e := e.(type) {
	case *observe.CgroupFileWritten:
		l.about("cgroup_written", e.Plugin, e.Hook.String(), e.Object)
		l.Field, l.New = e.File, e.Value
	case *observe.CgroupFileFailed:
		l.about("cgroup_failed", e.Plugin, "", e.Object)
		if e.Plugin != "" {
			l.Hook = e.Hook.String()
		}
		l.Field, l.New, l.Reason = e.File, e.Value, e.Err.Error()
	case *observe.CgroupFileRepaired:
		l.about("cgroup_repaired", e.Plugin, "", e.Object)
		l.Field, l.Old, l.New = e.File, e.Found, e.Value
	case *observe.CgroupFileFought:
		l.about("cgroup_left", e.Plugin, "", e.Object)
		l.Field, l.Old, l.New = e.File, e.Value, e.Found
	case *observe.CgroupFileUndone:
		l.about("cgroup_undone", "", "", e.Object)
		l.Field, l.New = e.File, e.Value
	}
}

// operator completes the line of what somebody did with plugins.
func (l *line) operator(e observe.Event) {
	switch e := e.(type) {
	case *observe.PluginLoaded:
		l.about("loaded", e.Plugin, "", observe.Object{})
		l.New, l.Settings = e.Version, e.SettingsDigest
	case *observe.PluginReplaced:
		l.about("replaced", e.Plugin, "", observe.Object{})
		l.Old, l.New, l.Settings = e.Previous, e.Version, e.SettingsDigest
	case *observe.PluginSettingsChanged:
		l.about("settings_changed", e.Plugin, "", observe.Object{})
		l.Settings = e.SettingsDigest
	case *observe.PluginRejected:
		l.about("load_failed", e.Plugin, "", observe.Object{})
		l.Reason = e.Err.Error()
	case *observe.PluginRemoved:
		if l.about("removed", e.Plugin, "", observe.Object{}); e.Disabled {
			l.Event = "disabled"
		}
	case *observe.BypassOn:
		l.Event, l.By, l.Reason = "bypass_on", e.By, e.Reason
	case *observe.BypassOff:
		l.Event, l.By = "bypass_off", e.By
	}
}

func (l *line) about(event, plugin, hook string, o observe.Object) {
	l.Event, l.Plugin, l.Hook = event, plugin, hook
	l.Namespace, l.Pod, l.PodID, l.Container, l.ContainerID, l.Image = o.Namespace, o.Pod, o.PodID, o.Container, o.ContainerID, o.Image
}
