package simulate

import (
	"maps"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// set gives an object of this kind the values of these fields, which package fixture has
// checked. Fields that its messages do not have are left out.
func set(o crifield.Object, kind abi.Object, fields fixture.Fields) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if info, ok := abi.FieldByName(kind, name); ok {
			for _, c := range assignments(info, fields.Value(info)) {
				o.Set(&c)
			}
		}
	}
}

// assignments are the changes that give a field this value, of those that fixture.Fields
// returns.
func assignments(info abi.FieldInfo, v any) (all []plugin.Change) {
	switch v := v.(type) {
	case int64:
		all = append(all, plugin.Change{Op: plugin.SetInt64, Int: v})
	case string:
		all = append(all, plugin.Change{Op: plugin.SetText, Text: v})
	case map[string]string:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, plugin.Change{Op: plugin.SetEntry, Key: key, Text: v[key]})
		}
	case []string:
		if info.Type == abi.List {
			return []plugin.Change{{Op: plugin.SetList, Field: info.Field, Text: string(abi.AppendList(nil, v))}}
		}
		for _, element := range v {
			all = append(all, plugin.Change{Op: plugin.AddElement, Key: element, Text: element})
		}
	}
	for i := range all {
		all[i].Field = info.Field
	}
	return all
}
