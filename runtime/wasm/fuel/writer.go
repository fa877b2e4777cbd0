package fuel

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

// writer collects bytes of a module.
type writer struct{ b []byte }

func (w *writer) byte(b ...byte) { w.b = append(w.b, b...) }
func (w *writer) bytes(b []byte) { w.b = append(w.b, b...) }
func (w *writer) name(s string)  { w.u32(uint32(len(s))); w.b = append(w.b, s...) }
func (w *writer) sized(b []byte) { w.u32(uint32(len(b))); w.b = append(w.b, b...) }
func (w *writer) op(ops ...binary.Opcode) {
	for _, op := range ops {
		w.b = append(w.b, byte(op))
	}
}

// count copies the length of a vector.
func (w *writer) count(r *binary.Reader) uint32 {
	n := r.U32()
	w.u32(n)
	return n
}

// entries copies a vector for others to be added to it. One that is not there is empty.
func (w *writer) entries(r *binary.Reader, more uint32) {
	w.u32(r.U32() + more)
	w.bytes(r.Rest())
}

// index writes an instruction of one byte and the index that it has.
func (w *writer) index(op binary.Opcode, index uint32) {
	w.op(op)
	w.u32(index)
}

// constant writes a constant instruction, for an i32 or an i64.
func (w *writer) constant(op binary.Opcode, v int64) {
	w.op(op)
	for { // a signed LEB128
		low := byte(v & 0x7f)
		v >>= 7
		extended := int64(0) // what a reader makes of the last byte's sign
		if low&0x40 != 0 {
			extended = -1
		}
		if v == extended {
			w.b = append(w.b, low)
			return
		}
		w.b = append(w.b, low|0x80)
	}
}

// u32 writes an unsigned LEB128.
func (w *writer) u32(v uint32) {
	for ; v >= 0x80; v >>= 7 {
		w.b = append(w.b, byte(v)|0x80)
	}
	w.b = append(w.b, byte(v))
}
