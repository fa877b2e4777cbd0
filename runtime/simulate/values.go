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
		info, ok := abi.FieldByName(kind, name)
		if !ok {
			continue
		}
		put := func(c plugin.Change) {
			c.Field = info.Field
			o.Set(&c)
		}
		switch v := fields.Value(info).(type) {
		case int64:
			put(plugin.Change{Op: plugin.SetInt64, Int: v})
		case string:
			put(plugin.Change{Op: plugin.SetText, Text: v})
		case map[string]string:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				put(plugin.Change{Op: plugin.SetEntry, Key: key, Text: v[key]})
			}
		case []string:
			if info.Type == abi.List {
				put(plugin.Change{Op: plugin.SetList, Text: string(abi.AppendList(nil, v))})
				continue
			}
			for _, element := range v {
				put(plugin.Change{Op: plugin.AddElement, Key: element, Text: element})
			}
		}
	}
}
