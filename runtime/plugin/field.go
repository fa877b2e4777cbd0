package plugin

import "github.com/wasmproxy/wasmproxy/abi"

// maxField is above every field's number. 64–79 are the last block of the table.
const maxField = 96

// fields finds a row of abi.Fields by object and number, since the host looks
// one up at each access.
var fields = indexFields()

func indexFields() (all [abi.Node + 1][maxField]*abi.FieldInfo) {
	for i := range abi.Fields {
		info := &abi.Fields[i]
		all[info.Object][info.Field] = info
	}
	return all
}

// guarded tells which numbers of fields need a capability to be read, of whatever
// object, since each access asks and few do.
var guarded = guardedFields()

func guardedFields() (all [maxField]bool) {
	for _, info := range abi.Fields {
		all[info.Field] = all[info.Field] || info.Reading != 0
	}
	return all
}

// FieldOf returns a field's row of the table, nil if there is none. The object is
// no handle. The row is not to be changed.
func FieldOf(o abi.Object, f abi.Field) *abi.FieldInfo {
	if o < 0 || int(o) >= len(fields) || f < 0 || f >= maxField {
		return nil
	}
	return fields[o][f]
}

// Readable reports whether a plugin with these capabilities may read a field. What
// the ABI does not have may be read by anybody: it is not there.
func Readable(ev Event, o abi.Object, f abi.Field, has abi.CapabilitySet) bool {
	return uint(f) >= maxField || !guarded[f] || readable(ev, o, f, has)
}

func readable(ev Event, o abi.Object, f abi.Field, has abi.CapabilitySet) bool {
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

// viewed are the fields that are in an object's view, in order.
var viewed = viewedFields()

func viewedFields() (all [abi.Node + 1][]*abi.FieldInfo) {
	for o, numbered := range fields {
		for _, info := range numbered {
			if info != nil && info.Reading == 0 && (info.Type == abi.Int64 || info.Type == abi.String) {
				all[o] = append(all[o], info)
			}
		}
	}
	return all
}

// viewTexts is room for the texts of most views.
const viewTexts = 512

// EncodeView returns the flat record of an object, made of what the event's own
// getters answer. It is for implementations of Event.View.
func EncodeView(ev Event, o abi.Object) ([]byte, abi.Errno) {
	kind := ev.Kind(o)
	if kind < 0 || int(kind) >= len(viewed) {
		return nil, abi.NotFound
	}
	w, there := abi.NewViewWriter(len(viewed[kind]), viewTexts), false
	for _, info := range viewed[kind] {
		if appendField(&w, ev, o, info) {
			there = true
		}
	}
	if !there {
		return nil, abi.NotFound
	}
	return w.View(), abi.OK
}

// appendField adds a field to a view if the object has it, which it reports.
func appendField(w *abi.ViewWriter, ev Event, o abi.Object, info *abi.FieldInfo) bool {
	if info.Type == abi.Int64 {
		n, errno := ev.Int64(o, info.Field)
		if errno == abi.OK {
			w.Int64(info.Field, n)
		}
		return errno == abi.OK
	}
	text, errno := ev.Text(o, info.Field)
	if errno == abi.OK {
		w.Text(info.Field, text)
	}
	return errno == abi.OK
}
