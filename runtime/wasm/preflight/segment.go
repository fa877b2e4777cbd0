package preflight

// This file reads the segments that fill tables and memories. Only active ones
// are taken: the others outlive a reset of the instance, and a passive segment of
// elements panics wazero's instantiation while reference types are off. No
// supported toolchain makes them.

import "github.com/wasmproxy/wasmproxy/runtime/wasm/binary"

const onlyActive = "; only active segments are supported: build without shared memory, reference types and wasm-opt's --memory-packing"

func (s *scanner) readElements(r *binary.Reader) {
	const active, passive, activeInTable, declarative = 0, 1, 2, 3
	entries := 0
	for range r.Count("segments", maxElements) {
		at, kind := r.Offset(), r.U32()
		switch kind {
		case active:
			s.expression(r)
		case activeInTable:
			zero(r, "table", r.U32())
			s.expression(r)
			zero(r, "kind of elements", uint32(r.Byte()))
		case passive:
			r.FailAt(at, "holds a passive segment"+onlyActive)
		case declarative:
			r.FailAt(at, "holds a declarative segment"+onlyActive)
		default:
			r.FailAt(at, "holds a segment of kind %d, whose entries are expressions; build with -mno-reference-types", kind)
		}
		n := r.Count("entries", maxTable)
		if entries += n; entries > maxTable {
			r.FailAt(at, "sets more than %d table entries", maxTable)
		}
		for range n {
			at, index := r.Offset(), r.U32()
			within(r, at, "function", index, len(s.functions))
		}
	}
}

// zero holds a segment to the only table or memory.
func zero(r *binary.Reader, what string, index uint32) {
	if index != 0 {
		r.Fail("holds a segment for %s %d, but there is only 0", what, index)
	}
}

func (s *scanner) readDataCount(r *binary.Reader) {
	at, n := r.Offset(), r.U32()
	if n > maxData {
		r.FailAt(at, "counts %d data segments, the limit is %d", n, maxData)
	}
	s.segments = int(n)
}

func (s *scanner) readData(r *binary.Reader) {
	const active, passive, activeInMemory = 0, 1, 2
	at, n := r.Offset(), r.Count("segments", maxData)
	if s.segments >= 0 && s.segments != n && r.Err() == nil {
		r.FailAt(at, "holds %d segments where %d were counted", n, s.segments)
	}
	s.segments = -1
	for range n {
		at := r.Offset()
		switch kind := r.U32(); kind {
		case active:
		case activeInMemory:
			zero(r, "memory", r.U32())
		case passive:
			r.FailAt(at, "holds a passive segment"+onlyActive)
		default:
			r.FailAt(at, "holds a segment of unknown kind %d", kind)
		}
		s.expression(r)
		r.Take(r.U32())
	}
}
