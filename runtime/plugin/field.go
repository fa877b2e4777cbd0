package plugin

import "github.com/wasmproxy/wasmproxy/abi"

// MaxField is above every field's number. 64–79 are the last block of the table.
const MaxField = 96

// fields finds a row of abi.Fields by object and number, since the host looks one up at each access. guarded tells which
// numbers of fields need a capability to be read, of whatever object, since each access asks and few do.
var fields, guarded = func() (all [abi.Node + 1][MaxField]*abi.FieldInfo, guarded [MaxField]bool) {
	for i := range abi.Fields {
		info := &abi.Fields[i]
		all[info.Object][info.Field] = info
		guarded[info.Field] = guarded[info.Field] || info.Reading != 0
	}
	return all, guarded
}()

// FieldOf returns a field's row of the table, nil if there is none. The object is
// no handle. The row is not to be changed.
func FieldOf(o abi.Object, f abi.Field) *abi.FieldInfo {
	known := o >= 0 && int(o) < len(fields)
	if !known || f < 0 || f >= MaxField {
		return nil
	}
	return fields[o][f]
}

// Readable reports whether a plugin with these capabilities may read a field. What
// the ABI does not have may be read by anybody: it is not there.
func Readable(ev Event, o abi.Object, f abi.Field, has abi.CapabilitySet) bool {
	if uint(f) >= MaxField || !guarded[f] {
		return true
	}
	if o >= abi.FirstHandle {
		o = ev.Kind(o)
	}
	info := FieldOf(o, f)
	return info == nil || has.Has(info.Reading)
}

// recordOf returns what the elements of a Set are, nil if they are texts.
func recordOf(o abi.Object, f abi.Field) *abi.RecordInfo {
	for i := range abi.Records {
		if r := &abi.Records[i]; r.Object == o && r.Field == f {
			return r
		}
	}
	return nil
}
