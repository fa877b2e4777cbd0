package binary

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"
)

// Magic is how a module begins: "\0asm" and version 1.
const Magic = "\x00asm\x01\x00\x00\x00"

// Reader walks bytes that nobody has checked. The first error stays, and from
// then on every method returns zero values. The zero Reader has nothing to read.
type Reader struct {
	b      []byte // what is left
	offset int    // of b in the module
	err    error
	at     int // the offset at which err occurred
}

// NewReader reads b, which begins at this offset of the module.
func NewReader(b []byte, offset int) Reader { return Reader{b: b, offset: offset} }

// Len is how many bytes are left. It is 0 after an error.
func (r *Reader) Len() int { return len(r.b) }

// Rest is what is left, part of the module.
func (r *Reader) Rest() []byte { return r.b }

// Offset is where the next byte stands in the module.
func (r *Reader) Offset() int { return r.offset }

// Err is the first error: a phrase that goes on from what was read, as in
// "claims 9 bytes where 3 are left". ErrOffset is where it occurred.
func (r *Reader) Err() error     { return r.err }
func (r *Reader) ErrOffset() int { return r.at }

// Fail ends the reading with an error at the next byte.
func (r *Reader) Fail(format string, args ...any) { r.FailAt(r.offset, format, args...) }

// FailAt ends the reading with an error at an offset of the module.
func (r *Reader) FailAt(offset int, format string, args ...any) {
	if r.err == nil {
		r.err, r.at = fmt.Errorf(format, args...), offset
		r.b = nil
	}
}

func (r *Reader) advance(n int) []byte {
	b := r.b[:n:n]
	r.b, r.offset = r.b[n:], r.offset+n
	return b
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.b) == 0 {
		r.Fail("ends too early")
		return 0
	}
	return r.advance(1)[0]
}

// U32 reads an unsigned LEB128.
func (r *Reader) U32() uint32 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // nearly all are
		return uint32(r.advance(1)[0])
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 || v > math.MaxUint32 {
		r.Fail("holds a number that is not an unsigned 32-bit LEB128")
		return 0
	}
	r.advance(n)
	return uint32(v)
}

// skipSigned passes a signed LEB128 of at most max bytes.
func (r *Reader) skipSigned(max int) {
	for range max {
		if r.Byte() < 0x80 {
			return
		}
	}
	r.Fail("holds a number of more than %d bytes", max)
}

// Take returns the next n bytes, which stay part of the module.
func (r *Reader) Take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.Fail("claims %d bytes where %d are left", n, len(r.b))
		return nil
	}
	return r.advance(int(n))
}

// Sub returns a Reader of the next bytes, whose number comes first. Its errors
// are its own.
func (r *Reader) Sub() Reader {
	n := r.U32()
	offset := r.offset
	return NewReader(r.Take(n), offset)
}

// Sections yields the sections of a module by their numbers, with what they hold, as far as
// their lengths can be read.
func Sections(module []byte) iter.Seq2[SectionID, Reader] {
	return func(yield func(SectionID, Reader) bool) {
		for r := NewReader(module[min(len(Magic), len(module)):], len(Magic)); r.Len() > 0; {
			if id, content := r.Byte(), r.Sub(); r.Err() != nil || !yield(id, content) {
				return
			}
		}
	}
}

// Count reads the length of a vector. An element takes at least one byte, so a
// count beyond the bytes left is a lie; one beyond limit is refused too.
func (r *Reader) Count(what string, limit int) int {
	offset := r.offset
	n := r.U32()
	switch {
	case r.err != nil:
		return 0
	case uint64(n) > uint64(len(r.b)):
		r.FailAt(offset, "claims %d %s where %d bytes are left", n, what, len(r.b))
		return 0
	case int64(n) > int64(limit):
		r.FailAt(offset, "holds %d %s, the limit is %d", n, what, limit)
		return 0
	}
	return int(n)
}

// Name reads a string of UTF-8, which stays part of the module.
func (r *Reader) Name() []byte {
	offset := r.offset
	b := r.Take(r.U32())
	if !utf8.Valid(b) {
		r.FailAt(offset, "holds a name that is not UTF-8")
		return nil
	}
	return b
}

// End fails unless everything was read.
func (r *Reader) End() {
	if len(r.b) > 0 {
		r.Fail("goes on for %d bytes after its end", len(r.b))
	}
}
