package audit

import (
	"encoding/json"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

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
	Hook        string    `json:"hook,omitempty"`
	OtherName   string    `json:"other_name,omitempty"`
	OtherID     string    `json:"other_id,omitempty"`
	Field       string    `json:"field,omitempty"`
	Old         string    `json:"old,omitempty"`
	New         string    `json:"new,omitempty"`
	First       string    `json:"first,omitempty"`
	Code        string    `json:"code,omitempty"`
	Reason      string    `json:"reason,omitempty"`
}

// audited reports whether an event is a line.
func audited(e observe.Event) bool {
	switch e.(type) {
	case *observe.FieldChanged, *observe.CallRefused, *observe.Conflict, *observe.DeferredUpdateFailed,
		*observe.CgroupFileWritten, *observe.CgroupFileFailed, *observe.CgroupFileRepaired, *observe.CgroupFileFought, *observe.CgroupFileUndone:
		return true
	}
	return false
}

// lineOf returns the line of an event that is audited, with its end.
func lineOf(e entry) []byte {
	l := line{Time: e.at.UTC(), TraceID: e.trace}
	switch e := e.event.(type) {
	case *observe.FieldChanged:
		l.about("changed", e.Plugin, e.Hook.String(), e.Object)
		l.OtherName, l.OtherID, l.Field, l.Old, l.New = e.OtherName, e.OtherID, e.Field, e.Previous, e.Value
	case *observe.CallRefused:
		l.about("refused", e.Plugin, e.Hook.String(), e.Object)
		l.Code, l.Reason = e.Code, e.Reason
	case *observe.Conflict:
		l.about("conflict", e.Plugin, e.Hook.String(), e.Object)
		l.First, l.Field = e.First, e.Field
	case *observe.DeferredUpdateFailed:
		l.about("update_failed", e.Plugin, e.Hook.String(), e.Object)
		l.Field, l.Reason = e.Field, e.Err.Error()
	default:
		l.file(e)
	}
	text, _ := json.Marshal(l) // texts alone: it cannot fail
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

func (l *line) about(event, plugin, hook string, o observe.Object) {
	l.Event, l.Plugin, l.Hook = event, plugin, hook
	l.Namespace, l.Pod, l.PodID, l.Container, l.ContainerID, l.Image = o.Namespace, o.Pod, o.PodID, o.Container, o.ContainerID, o.Image
}
