package wasm

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// reader walks bytes that nobody has checked. The first error stays, and from
// then on every method returns zero values. It never allocates by a number that
// it read.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
		r.b = nil
	}
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail("ends too early")
		return 0
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 || v > math.MaxUint32 {
		r.fail("holds a number that is not an unsigned 32-bit LEB128")
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

// skipSigned passes a signed LEB128 of at most max bytes.
func (r *reader) skipSigned(max int) {
	for range max {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("holds a number of more than %d bytes", max)
}

// take returns the next n bytes, which stay part of the module.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.fail("claims %d bytes where %d are left", n, len(r.b))
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// count reads the length of a vector. An element takes at least one byte, so a
// count beyond the bytes left is a lie; one beyond limit is refused too.
func (r *reader) count(what string, limit int) int {
	n := r.u32()
	switch {
	case uint64(n) > uint64(len(r.b)):
		r.fail("claims %d %s where %d bytes are left", n, what, len(r.b))
	case int(n) > limit:
		r.fail("holds %d %s, the limit is %d", n, what, limit)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) name() string {
	b := r.take(r.u32())
	if !utf8.Valid(b) {
		r.fail("holds a name that is not UTF-8")
		return ""
	}
	return string(b)
}

// end fails unless everything was read.
func (r *reader) end() {
	if len(r.b) > 0 {
		r.fail("goes on for %d bytes after its end", len(r.b))
	}
}
