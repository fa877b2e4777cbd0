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

// scalar is a field of a number or a text.
type scalar struct {
	field  abi.Field
	number bool
}

func viewedFields() (all [abi.Node + 1][]scalar) {
	for o, numbered := range fields {
		for _, info := range numbered {
			if info != nil && info.Reading == 0 && (info.Type == abi.Int64 || info.Type == abi.String) {
				all[o] = append(all[o], scalar{info.Field, info.Type == abi.Int64})
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
	return EncodeScalars(ev.Kind(o),
		func(f abi.Field) (int64, bool) { n, errno := ev.Int64(o, f); return n, errno == abi.OK },
		func(f abi.Field) (string, bool) { text, errno := ev.Text(o, f); return text, errno == abi.OK })
}

// EncodeScalars returns the flat record of an object of a kind, made of what the two
// answer for its numbers and texts; ok tells whether the object has the field.
func EncodeScalars(kind abi.Object, number func(abi.Field) (n int64, ok bool), text func(abi.Field) (text string, ok bool)) ([]byte, abi.Errno) {
	if kind < 0 || int(kind) >= len(viewed) {
		return nil, abi.NotFound
	}
	w, there := abi.NewViewWriter(len(viewed[kind]), viewTexts), false
	for _, f := range viewed[kind] {
		if f.number {
			if n, ok := number(f.field); ok {
				w.Int64(f.field, n)
				there = true
			}
		} else if t, ok := text(f.field); ok {
			w.Text(f.field, t)
			there = true
		}
	}
	if !there {
		return nil, abi.NotFound
	}
	return w.View(), abi.OK
}
