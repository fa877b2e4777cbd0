package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// earlierPlugin is called before the simulated one, and asks for what the event says.
type earlierPlugin struct {
	changes fixture.Changes
	err     error // of the first change that cannot be asked for
}

// Manifest implements plugin.Plugin.
func (*earlierPlugin) Manifest() abi.Manifest { return abi.Manifest{Name: "earlier"} }

// Close implements plugin.Plugin.
func (*earlierPlugin) Close(context.Context) error { return nil }

// Call implements plugin.Plugin.
func (e *earlierPlugin) Call(_ context.Context, _ *plugin.Budget, _ plugin.Event, adj *plugin.Adjustment) error {
	for _, target := range slices.Sorted(maps.Keys(e.changes)) {
		if err := ask(adj, target, e.changes[target]); err != nil {
			e.err = fmt.Errorf("earlier: %s: %w", target, err)
			return nil // Run returns it
		}
	}
	return nil
}

// ask asks for one change that is written as [fixture.Changes] has it.
func ask(adj *plugin.Adjustment, target, v string) error {
	if name, file, ok := strings.Cut(target, " cgroup file "); ok {
		o, err := objectByName(name)
		if err != nil {
			return err
		}
		return adj.WriteFile(o, file, v)
	}
	name, field, _ := strings.Cut(target, ".")
	o, err := objectByName(name)
	if err != nil {
		return err
	}
	field, quoted, keyed := strings.Cut(field, "[")
	key, err := strconv.Unquote(strings.TrimSuffix(quoted, "]"))
	if keyed && err != nil {
		return fmt.Errorf("%s: not a key: %w", quoted, err)
	}
	info, ok := abi.FieldByName(o, field)
	if !ok || keyed != (info.Type == abi.Map || info.Type == abi.Set) {
		return fmt.Errorf("no such field")
	}
	return askField(adj, info, key, v)
}

func objectByName(name string) (abi.Object, error) {
	for _, o := range []abi.Object{abi.Event, abi.Pod, abi.Container} {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%q is no object of an event", name)
}

func askField(adj *plugin.Adjustment, info abi.FieldInfo, key, v string) error {
	o, f := info.Object, info.Field
	switch info.Type {
	case abi.Int64:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return err
		}
		return adj.SetInt64(o, f, n)
	case abi.String:
		return adj.SetText(o, f, v)
	case abi.Map:
		if v == fixture.Deleted {
			return adj.DeleteEntry(o, f, key)
		}
		return adj.SetEntry(o, f, key, v)
	case abi.List:
		var list []string
		if err := json.Unmarshal([]byte(v), &list); err != nil {
			return err
		}
		return adj.SetList(o, f, list)
	}
	return askElement(adj, info, key, v)
}

func askElement(adj *plugin.Adjustment, info abi.FieldInfo, key, v string) error {
	if v == fixture.Deleted {
		return adj.DeleteElement(info.Object, info.Field, key)
	}
	keys := info.RecordKeys()
	if keys == nil {
		return adj.AddElement(info.Object, info.Field, key)
	}
	var record map[string]string
	if err := json.Unmarshal([]byte(v), &record); err != nil {
		return err
	}
	element := abi.AppendRecord(nil, keys, func(key string) string { return record[key] })
	return adj.AddElement(info.Object, info.Field, string(element))
}

// changeTarget is that of a change, with an id for a handle.
func changeTarget(ev plugin.Event, change plugin.Change) string {
	if change.Object < abi.FirstHandle {
		return change.Target()
	}
	id, _ := ev.Text(change.Object, map[abi.Object]abi.Field{abi.Pod: abi.PodID, abi.Container: abi.ContainerID}[change.Of])
	kind := change.Of.String()
	return strings.Replace(change.Target(), "other "+kind, kind+"("+id+")", 1)
}

// changeText is the value of a change as [fixture.Changes] has it.
func changeText(c plugin.Change) string {
	switch c.Op {
	case plugin.SetInt64:
		return strconv.FormatInt(c.Int, 10)
	case plugin.DeleteEntry, plugin.DeleteElement:
		return fixture.Deleted
	case plugin.SetList:
		return inJSON(append([]string{}, c.Elements()...))
	case plugin.AddElement:
		info, _ := abi.FieldOf(c.Kind(), c.Field)
		if info.RecordKeys() == nil {
			return "true"
		}
		record := map[string]string{}
		abi.EachEntry(c.Text, func(k, v string) bool { record[k] = v; return true })
		return inJSON(record)
	}
	return c.Text
}

func inJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always have a form in JSON
	}
	return string(b)
}
