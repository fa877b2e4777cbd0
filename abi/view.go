package abi

// View is the flat record of an object's numbers and texts, as function view gives it:
//
//	u32 size of the whole, u32 count,
//	count × { u32 field, u32 type, u64 payload }, sorted by field,
//	data
//
// The payload of an Int64 is its value. That of a String is a place in the view:
// u32 offset from its start, u32 length. What is empty is left out, and so is what
// needs a capability to be read.
//
// The methods trust nothing: of a view that is not in order they return nothing.
type View []byte

const (
	viewHead  = 8
	viewEntry = 16
)

// Int64 returns a field of type Int64; ok tells whether the view has it.
func (v View) Int64(f Field) (n int64, ok bool) {
	entry := v.find(f, Int64)
	if entry == nil {
		return 0, false
	}
	return int64(uint64(u32(entry[8:])) | uint64(u32(entry[12:]))<<32), true
}

// Text returns a field of type String: a part of the view, nil if the view does
// not have it.
func (v View) Text(f Field) []byte {
	entry := v.find(f, String)
	if entry == nil {
		return nil
	}
	offset, length := uint64(u32(entry[8:])), uint64(u32(entry[12:]))
	if offset+length > uint64(len(v)) {
		return nil
	}
	return v[offset : offset+length : offset+length]
}

// find returns the entry of a field, nil if there is none of that type.
func (v View) find(f Field, t Type) []byte {
	if len(v) < viewHead {
		return nil
	}
	low, high := 0, min(int(u32(v[4:])), (len(v)-viewHead)/viewEntry)
	for low < high {
		middle := (low + high) / 2
		entry := v[viewHead+middle*viewEntry:][:viewEntry]
		switch at := Field(u32(entry)); {
		case at < f:
			low = middle + 1
		case at > f:
			high = middle
		case Type(u32(entry[4:])) != t:
			return nil
		default:
			return entry
		}
	}
	return nil
}

// ViewWriter writes a View, for which it takes memory once if it is told how large it
// may become.
type ViewWriter struct {
	view  []byte // head, entries, room for more of them, texts
	count int    // of entries
	room  int    // for so many entries
}

// NewViewWriter returns the writer of a view of at most so many fields. texts is how
// many bytes all their texts may have; more cost another allocation.
func NewViewWriter(fields, texts int) ViewWriter {
	size := viewHead + viewEntry*fields
	return ViewWriter{view: make([]byte, size, size+texts), room: fields}
}

// Int64 adds a field of type Int64, which comes after those that were added.
func (w *ViewWriter) Int64(f Field, n int64) {
	w.add(f, Int64, uint32(n), uint32(n>>32))
}

// Text adds a field of type String likewise, unless it is empty.
func (w *ViewWriter) Text(f Field, text string) {
	if text != "" {
		w.add(f, String, uint32(len(w.view)), uint32(len(text)))
		w.view = append(w.view, text...)
	}
}

func (w *ViewWriter) add(f Field, t Type, low, high uint32) {
	entry := (*[viewEntry]byte)(w.view[viewHead+w.count*viewEntry:])
	putU32(entry[0:4], uint32(f))
	putU32(entry[4:8], uint32(t))
	putU32(entry[8:12], low)
	putU32(entry[12:16], high)
	w.count++
}

// View returns the view. It is the writer's last use.
func (w *ViewWriter) View() View {
	end := viewHead + w.count*viewEntry
	unused := (w.room - w.count) * viewEntry
	texts := w.view[end+unused:]
	w.view = append(w.view[:end], texts...)
	putU32(w.view, uint32(len(w.view)))
	putU32(w.view[4:], uint32(w.count))
	for at := viewHead; at < end; at += viewEntry {
		if entry := w.view[at:]; Type(u32(entry[4:])) == String {
			putU32(entry[8:], u32(entry[8:])-uint32(unused))
		}
	}
	return w.view
}
