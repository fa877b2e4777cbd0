package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// scratch is the buffer that every read shares. It grows to the largest value
// read so far. A guest runs one call at a time, so nothing else needs it.
var scratch = make([]byte, 256)

// read calls a host function that fills a buffer, once more with a larger
// buffer if the value did not fit. The bytes are good until the next read. If the
// host refuses, they are nil and the result is its reason.
func read(call func(buf unsafe.Pointer, size uint32) int32) ([]byte, int32) {
	n := call(unsafe.Pointer(unsafe.SliceData(scratch)), uint32(len(scratch)))
	if int(n) > len(scratch) {
		scratch = make([]byte, n)
		n = call(unsafe.Pointer(unsafe.SliceData(scratch)), uint32(len(scratch)))
	}
	if n < 0 || int(n) > len(scratch) {
		return nil, n
	}
	return scratch[:n], 0
}

// get is read for getters: a value that is not there is nil; any other error
// fails the hook.
func get(op, key string, call func(buf unsafe.Pointer, size uint32) int32) []byte {
	b, result := read(call)
	missing(op, key, result)
	return b
}

// missing notes a failed read, unless the value is just not there.
func missing(op, key string, result int32) {
	if Errno(result) != abi.NotFound {
		check(op, key, result)
	}
}

func readText(op string, o abi.Object, f abi.Field) string {
	if v := viewOf(o); v != nil {
		return v.text(f)
	}
	return string(get(op, "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostGet(o, f, buf, size)
	}))
}

func readInt64(op string, o abi.Object, f abi.Field) int64 {
	v, _ := lookupInt64(op, o, f)
	return v
}

// lookupInt64 also tells whether the value is there.
func lookupInt64(op string, o abi.Object, f abi.Field) (int64, bool) {
	if v := viewOf(o); v != nil {
		return v.int64(f)
	}
	var v int64 // WebAssembly is little-endian, as the host writes it
	if n := hostGetI64(o, f, unsafe.Pointer(&v)); n < 0 {
		missing(op, "", n)
		return 0, false
	}
	return v, true
}

func readEntry(op string, o abi.Object, f abi.Field, key string) (string, bool) {
	b := get(op, key, func(buf unsafe.Pointer, size uint32) int32 {
		return hostMapGet(o, f, key, buf, size)
	})
	return string(b), b != nil
}

// Entries ranges over a map's keys and values.
type Entries = func(yield func(key, value string) bool)

// readEntries takes a copy of the whole map, so that the loop over it may read
// other things.
func readEntries(op string, o abi.Object, f abi.Field) Entries {
	return entries(string(get(op, "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostMapDump(o, f, buf, size)
	})))
}

func entries(dump string) Entries {
	return func(yield func(key, value string) bool) { abi.EachEntry(dump, yield) }
}

// readList returns the elements of a list or set.
func readList(op string, o abi.Object, f abi.Field) []string {
	var list []string
	abi.EachElement(string(get(op, "", func(buf unsafe.Pointer, size uint32) int32 {
		return hostListDump(o, f, buf, size)
	})), func(element string) bool {
		list = append(list, element)
		return true
	})
	return list
}

// handles cuts a list of handles.
func handles(list []byte) []abi.Object {
	all := make([]abi.Object, 0, len(list)/4)
	for ; len(list) >= 4; list = list[4:] {
		all = append(all, abi.Object(uint32(list[0])|uint32(list[1])<<8|uint32(list[2])<<16|uint32(list[3])<<24))
	}
	return all
}
