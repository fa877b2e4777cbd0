package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// scratch is the buffer that every read shares. It grows to the largest value
// read so far. A guest runs one call at a time, so nothing else needs it.
var scratch = make([]byte, 256)

// read calls a host function that fills a buffer, once more with a larger
// buffer if the value did not fit. The bytes are good until the next read. A
// value that is not there is nil; any other error fails the hook.
func read(op, key string, call func(buf unsafe.Pointer, size uint32) int32) []byte {
	n := call(unsafe.Pointer(unsafe.SliceData(scratch)), uint32(len(scratch)))
	if int(n) > len(scratch) {
		scratch = make([]byte, n)
		n = call(unsafe.Pointer(unsafe.SliceData(scratch)), uint32(len(scratch)))
	}
	if n < 0 || int(n) > len(scratch) {
		missing(op, key, n)
		return nil
	}
	return scratch[:n]
}

// missing notes a failed read, unless the value is just not there.
func missing(op, key string, result int32) {
	if Errno(result) != abi.NotFound {
		check(op, key, result)
	}
}

func readText(op string, o abi.Object, f abi.Field) string {
	return string(read(op, "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostGet(o, f, buf, size)
	}))
}

func readInt64(op string, o abi.Object, f abi.Field) int64 {
	var v int64 // WebAssembly is little-endian, as the host writes it
	if n := hostGetInt64(o, f, unsafe.Pointer(&v)); n < 0 {
		missing(op, "", n)
		return 0
	}
	return v
}

func readEntry(op string, o abi.Object, f abi.Field, key string) (string, bool) {
	b := read(op, key, func(buf unsafe.Pointer, size uint32) int32 {
		return hostMapGet(o, f, key, buf, size)
	})
	return string(b), b != nil
}

// Entries ranges over a map's keys and values.
type Entries = func(yield func(key, value string) bool)

// readEntries takes a copy of the whole map, so that the loop over it may read
// other things.
func readEntries(op string, o abi.Object, f abi.Field) Entries {
	dump := string(read(op, "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostMapDump(o, f, buf, size)
	}))
	return func(yield func(key, value string) bool) {
		rest := dump
		if len(rest) < 4 {
			return
		}
		count, rest := number(rest)
		for range count {
			var key, value string
			key, rest = counted(rest)
			value, rest = counted(rest)
			if !yield(key, value) {
				return
			}
		}
	}
}

// counted cuts a string that follows its length.
func counted(s string) (text, rest string) {
	n, s := number(s)
	return s[:n], s[n:]
}

// number cuts a little-endian u32.
func number(s string) (n uint32, rest string) {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24, s[4:]
}
