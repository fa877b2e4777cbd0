package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// earlierPlugin is called before the simulated one, and asks for what the event says.
type earlierPlugin struct {
	changes fixture.Changes
	err     error // of the first change that cannot be asked for
}

func (*earlierPlugin) Manifest() abi.Manifest      { return abi.Manifest{Name: "earlier"} }
func (*earlierPlugin) Close(context.Context) error { return nil }

func (e *earlierPlugin) Call(_ context.Context, _ *plugin.Budget, _ plugin.Event, adj *plugin.Adjustment) error {
	for _, target := range slices.Sorted(maps.Keys(e.changes)) {
		change, err := parseChange(target, e.changes[target])
		if err == nil {
			err = adj.Add(change)
		}
		if errors.Is(err, abi.Conflict) { // this plugin is the first, so that only a value from before the event stands in its way
			err = errors.New("the plugin under test holds it from a case before, so that no other plugin can set it")
		}
		if err != nil {
			e.err = fmt.Errorf("earlier: %s: %w", target, err)
			return nil // Run returns it
		}
	}
	return nil
}

// parseChange reads a change that is written as [fixture.Changes] has it.
func parseChange(target, v string) (c plugin.Change, err error) {
	object, file, isFile := strings.Cut(target, " cgroup file ")
	if isFile {
		c.Object, err = objectByName(object)
		c.Op, c.Key, c.Text = plugin.WriteFile, file, v
		return c, err
	}
	object, field, _ := strings.Cut(target, ".")
	if c.Object, err = objectByName(object); err != nil {
		return c, err
	}
	field, key, keyed := strings.Cut(field, "[")
	if keyed {
		if c.Key, err = strconv.Unquote(strings.TrimSuffix(key, "]")); err != nil {
			return c, fmt.Errorf("%s: not a key: %w", key, err)
		}
	}
	info, ok := abi.FieldByName(c.Object, field)
	if !ok || keyed != (info.Type == abi.Map || info.Type == abi.Set) {
		return c, errors.New("no such field")
	}
	c.Field = info.Field

	var list []string
	var record map[string]string
	switch {
	case info.Type == abi.Int64:
		c.Op = plugin.SetInt64
		c.Int, err = strconv.ParseInt(v, 10, 64)
	case info.Type == abi.String:
		c.Op, c.Text = plugin.SetText, v
	case info.Type == abi.List:
		err = json.Unmarshal([]byte(v), &list)
		c.Op, c.Text = plugin.SetList, string(abi.AppendList(nil, list))
	case info.Type == abi.Map && v == fixture.Deleted:
		c.Op = plugin.DeleteEntry
	case info.Type == abi.Map:
		c.Op, c.Text = plugin.SetEntry, v
	case v == fixture.Deleted:
		c.Op = plugin.DeleteElement
	case info.RecordKeys() == nil:
		c.Op, c.Text = plugin.AddElement, c.Key
	default:
		err = json.Unmarshal([]byte(v), &record)
		c.Op, c.Text = plugin.AddElement, string(abi.AppendRecord(nil, info.RecordKeys(), func(key string) string { return record[key] }))
	}
	return c, err
}

func objectByName(name string) (abi.Object, error) {
	for _, o := range []abi.Object{abi.Event, abi.Pod, abi.Container} {
		if o.String() == name {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%q is no object of an event", name)
}

// changeText is the value of a change as [fixture.Changes] has it.
func changeText(c plugin.Change) string {
	switch c.Op {
	case plugin.SetInt64:
		return strconv.FormatInt(c.Int, 10)
	case plugin.Withdraw:
		return fixture.Withdrawn
	case plugin.DeleteEntry, plugin.DeleteElement:
		return fixture.Deleted
	case plugin.SetList:
		return fixture.Text(append([]string{}, c.Elements()...))
	case plugin.AddElement:
		info, _ := abi.FieldOf(c.Kind(), c.Field)
		if info.RecordKeys() == nil {
			return "true"
		}
		record := map[string]string{}
		abi.EachEntry(c.Text, func(k, v string) bool { record[k] = v; return true })
		return fixture.Text(record)
	}
	return c.Text
}
