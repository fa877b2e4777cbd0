package simulate

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Fixtures makes a case for plugin test of each call of a recording that can be one, in the form of JSON. skipped says of
// each other call why it cannot: a fixture has no handles, no secrets and no conflicts.
func Fixtures(rec *recording.Recording) (all []map[string]any, skipped []string) {
	h := &rec.Header
	for i := range rec.Calls {
		c := &rec.Calls[i]
		name := fmt.Sprintf("line %d: %s", c.Line, c.Title())
		f := fixtureOf{
			values: map[abi.Object]fixture.Fields{abi.Event: {}, abi.Pod: {}, abi.Container: {}, abi.Node: {}},
			kv:     map[string]string{}, files: map[string]map[string]string{},
		}
		f.match(h, c)
		if err := f.fill(c); err != nil {
			skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
			continue
		}

		out := map[string]any{"name": name, "hook": c.Name, "time": c.Time}
		if len(h.Grant) > 0 {
			out["grant"] = h.Grant
		}
		for _, o := range []abi.Object{abi.Event, abi.Pod, abi.Container, abi.Node} {
			if len(f.values[o]) > 0 {
				out[o.String()] = f.values[o]
			}
		}
		if h.Node.CgroupVersion > 0 {
			out["cgroup"] = fmt.Sprint("v", h.Node.CgroupVersion)
		}
		if len(h.Config) > 0 {
			out["config"] = h.Config
		}
		if len(f.kv) > 0 {
			out["kv"] = f.kv
		}
		if len(f.files) > 0 {
			out["cgroup_files"] = f.files
		}

		was := want{changes: map[string]string{}}
		for i := range c.Asked {
			was.add(&c.Asked[i].Question, h.Env, c.Handles)
		}
		wants := fixture.Want{Error: c.Error}
		if c.Reject != nil {
			wants.Reject = &fixture.Rejection{Code: c.Reject.Code, Reason: c.Reject.Reason}
		} else if c.Error == "" {
			wants.Changes = was.changes
			maps.DeleteFunc(wants.Changes, func(target, value string) bool {
				return strings.HasPrefix(target, "kv[") || value == fixture.Withdrawn // which nothing is in a case alone
			})
		}
		out["want"] = wants
		all = append(all, out)
	}
	return all, skipped
}

// fixtureOf gathers what a call has read.
type fixtureOf struct {
	values map[abi.Object]fixture.Fields
	kv     map[string]string
	files  map[string]map[string]string
}

// match notes what the match of the plugin's hook has accepted, which the plugin itself need not have read.
func (f *fixtureOf) match(h *recording.Header, c *recording.Call) {
	pod := f.values[abi.Pod]
	if c.Pod != nil {
		pod["namespace"], pod["name"] = c.Pod.Namespace, c.Pod.Name
	}
	if c.Container != nil {
		f.values[abi.Container]["name"] = c.Container.Name
	}
	for _, hook := range h.Hooks {
		if hook.Hook != c.Name {
			continue
		}
		for field, globs := range map[string][]string{"qos": hook.Match.QoS, "runtime_handler": hook.Match.RuntimeHandlers} {
			for _, glob := range globs {
				if !strings.HasPrefix(glob, "!") {
					pod[field] = glob
				}
			}
		}
		for field, wanted := range map[string]map[string]string{"labels": hook.Match.Labels, "annotations": hook.Match.Annotations} {
			for key, value := range wanted {
				if !strings.HasPrefix(value, "!") {
					setEntry(pod, field, key, value)
				}
			}
		}
	}
}

func (f *fixtureOf) fill(c *recording.Call) error {
	wrote := map[string]bool{}
	for i := range c.Asked {
		a := &c.Asked[i]
		q := &a.Question
		switch name := q.Function.Name; {
		case a.Hidden, strings.Contains(a.Key(), plugin.Redacted):
			return errors.New("it has read or set what is hidden")
		case name == "pod_find", len(q.Args) > 0 && q.Args[0].Number >= int64(abi.FirstHandle):
			return errors.New("it has looked at other pods or containers, or at a QoS class")
		case q.Errno == abi.Conflict:
			return errors.New("an earlier plugin had set what it set")
		case name == "kv_set", name == "kv_del":
			wrote[q.Args[0].Text] = true
		case name == "kv_get":
			if _, known := f.kv[q.Args[0].Text]; q.Errno == abi.OK && !known && !wrote[q.Args[0].Text] {
				f.kv[q.Args[0].Text] = string(q.Data)
			}
		case recording.Writes(q), name == "reject", name == "conflict":
		case name == "cgroup_get" && q.Kind <= abi.Container:
			if object := q.Kind.String(); q.Errno == abi.OK {
				if f.files[object] == nil {
					f.files[object] = map[string]string{}
				}
				f.files[object][q.Args[1].Text] = string(q.Data)
			}
		case q.Kind < abi.Event || q.Kind > abi.Node, len(q.Args) < 2:
			return fmt.Errorf("it asked %s, which a fixture has no place for", name)
		case q.Errno == abi.OK:
			f.read(a)
		case q.Errno == abi.Unsupported:
			return errors.New("it has read what the host could not tell")
		}
	}
	return nil
}

// read notes the value of a field.
func (f *fixtureOf) read(a *recording.Asked) {
	q := &a.Question
	info, ok := abi.FieldOf(q.Kind, abi.Field(q.Args[1].Number))
	if given := info.Field == abi.EventHook || info.Field == abi.EventTime; !ok || given && q.Kind == abi.Event {
		return
	}
	of := f.values[q.Kind]
	switch q.Function.Name {
	case "get_i64", "get", "list_dump":
		of[info.Name] = a.Is
	case "map_dump":
		abi.EachEntry(string(q.Data), func(key, value string) bool { setEntry(of, info.Name, key, value); return true })
	case "map_get":
		setEntry(of, info.Name, q.Args[2].Text, string(q.Data))
	}
}

// setEntry sets an entry of a field that is a map.
func setEntry(of fixture.Fields, field, key, value string) {
	entries, _ := of[field].(map[string]string)
	if entries == nil {
		entries = map[string]string{}
		of[field] = entries
	}
	entries[key] = value
}
