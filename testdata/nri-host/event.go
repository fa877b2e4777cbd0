package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// fields are the values of an object by their names in the ABI, in the form that JSON has: a json.Number, a
// string, a map[string]any or a []any. What this host cannot tell is abi.Unsupported.
type fields map[string]any

// event is what a guest is called for, and what it asks for.
type event struct {
	hook    abi.Hook
	time    int64
	objects map[abi.Object]fields // event, pod, container, node
	granted abi.CapabilitySet
	config  string
	unified bool              // the node has cgroup v2
	earlier map[string]string // what plugins before asked for, by target

	changes  []change
	conflict bool // a change was refused because of earlier
	bytes    int  // of all changes
	code     int32
	reason   string
	refused  bool
	log      []string
}

// change is a field, an entry or an element that is set, or deleted if value is nil; or a cgroup file.
type change struct {
	info   abi.FieldInfo
	file   string
	key    string
	target string
	value  any
	size   int // of key and value
}

// target is written as fixtures have it.
func target(info abi.FieldInfo, key string) string {
	t := info.Object.String() + "." + info.Name
	if info.Type == abi.Map || info.Type == abi.Set {
		t += "[" + quoted(key) + "]"
	}
	return t
}

func quoted(key string) string { return fmt.Sprintf("%q", key) }

// find returns the field of an object for a guest that reads it, and its value; nil if it is left out.
func (e *event) find(o abi.Object, f abi.Field, types ...abi.Type) (abi.FieldInfo, any, abi.Errno) {
	info, known := abi.FieldOf(o, f)
	values, there := e.objects[o]
	switch {
	case known && !e.granted.Has(info.Reading):
		return info, nil, abi.Denied
	case !known, !there, !slices.Contains(types, info.Type):
		return info, nil, abi.NotFound
	}
	v, given := values[info.Name]
	if errno, unknown := v.(abi.Errno); unknown {
		return info, nil, errno
	}
	if none := o == abi.Event || info.Format == abi.ID; !given && none {
		return info, nil, abi.NotFound
	}
	return info, v, abi.OK
}

// entries are those of a map, sorted by key.
func entries(v any) (keys, values []string) {
	m, _ := v.(map[string]any)
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		values = append(values, fmt.Sprint(m[key]))
	}
	return keys, values
}

// elements are those of a list or set, with records encoded.
func elements(info abi.FieldInfo, v any) (list []string) {
	all, _ := v.([]any)
	for _, element := range all {
		if record, ok := element.(map[string]any); ok {
			element = string(abi.AppendRecord(nil, info.RecordKeys(), func(key string) string {
				text, _ := record[key].(string)
				return text
			}))
		}
		list = append(list, fmt.Sprint(element))
	}
	return list
}

// aliases are the fields that are the same as a file of unified.
var aliases = map[string][]string{
	"cpu.max": {"cpu_quota", "cpu_period"}, "cpu.weight": {"cpu_shares"}, "memory.max": {"memory_limit_in_bytes"},
	"memory.swap.max": {"memory_swap_limit_in_bytes"}, "cpuset.cpus": {"cpuset_cpus"}, "cpuset.mems": {"cpuset_mems"},
}

// set makes a change, or says why not. size is that of key and value.
func (e *event) set(o abi.Object, f abi.Field, op abi.Type, key string, value any, size int) abi.Errno {
	info, known := abi.FieldOf(o, f)
	c := change{info: info, key: key, target: target(info, key), value: value, size: size}
	switch {
	case size > 256<<10 || e.bytes+size > 1<<20:
		return abi.TooLarge
	case len(e.changes) >= 256:
		return abi.Limit
	case !known: // also of an object that the ABI does not have
		return abi.NotFound
	case info.Type != op:
		return abi.Invalid
	case !e.granted.Has(info.Writing):
		return abi.Denied
	case !info.Writable.Has(e.hook):
		return abi.ReadOnly
	}
	if errno := e.check(&c); errno != abi.OK {
		return errno
	}
	for _, same := range append(e.sameAs(&c), c.target) {
		if before, ok := e.earlier[same]; ok && before != text(c.value) {
			e.conflict = true
			return abi.Conflict
		}
	}
	e.changes, e.bytes = append(e.changes, c), e.bytes+size
	return abi.OK
}

// withdraw takes back what the guest has set of a field, or of one key of it.
func (e *event) withdraw(o abi.Object, f abi.Field, key string) abi.Errno {
	info, known := abi.FieldOf(o, f)
	keyed := info.Type == abi.Map || info.Type == abi.Set
	switch {
	case len(key) > 256<<10:
		return abi.TooLarge
	case !known: // also a cgroup file, which this host does not set
		return abi.NotFound
	case keyed != (key != ""):
		return abi.Invalid
	case !e.granted.Has(info.Writing):
		return abi.Denied
	case !info.Writable.Has(e.hook):
		return abi.ReadOnly
	}
	of := target(info, key)
	e.changes = slices.DeleteFunc(e.changes, func(c change) bool {
		if c.target == of {
			e.bytes -= c.size
		}
		return c.target == of
	})
	return abi.OK
}

func (e *event) sameAs(c *change) (targets []string) {
	object, file, found := strings.Cut(c.target, "resources.unified[\"")
	for _, name := range aliases[strings.TrimSuffix(file, `"]`)] {
		if found {
			targets = append(targets, object+"resources."+name)
		}
	}
	return targets
}

// text is a value as it is compared.
func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err) // values are of JSON's types
	}
	return string(b)
}

// outcome are the changes that hold, by target.
func (e *event) outcome() map[string]any {
	all := map[string]any{}
	for _, c := range e.changes {
		all[c.target] = c.value
	}
	return all
}
