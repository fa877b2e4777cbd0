package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A read calls a host function that writes to the chunk, and once more with a larger one if
// that was too small. TinyGo takes no import as a value, and a closure around it would be
// allocated in each call: hence the same lines in each.

// missing notes a failed read, unless the value is just not there: then what the plugin
// gets is empty, and the hook does not fail.
func missing(op, key string, result int32) {
	if result < 0 && Errno(result) != abi.NotFound {
		refuse(op, key, result, true)
	}
}

func readText(op string, o abi.Object, f abi.Field) string {
	n := hostGet(o, f, free, room)
	for ; n > room; n = hostGet(o, f, free, room) {
		refill(n)
	}
	missing(op, "", n)
	return cut(n)
}

func readInt64(op string, o abi.Object, f abi.Field) int64 {
	v, _ := lookupInt64(op, o, f)
	return v
}

// lookupInt64 also tells whether the value is there.
func lookupInt64(op string, o abi.Object, f abi.Field) (int64, bool) {
	if n := hostGetI64(o, f, unsafe.Pointer(&number)); n < 0 {
		missing(op, "", n)
		return 0, false
	}
	return number, true
}

// number is where the host writes numbers: a variable of the function would be allocated
// in each call. WebAssembly is little-endian, as the host writes it.
var number int64

func readEntry(op string, o abi.Object, f abi.Field, key string) (string, bool) {
	n := hostMapGet(o, f, key, free, room)
	for ; n > room; n = hostMapGet(o, f, key, free, room) {
		refill(n)
	}
	missing(op, key, n)
	return cut(n), n >= 0
}

// Entries ranges over a map's keys and values.
type Entries = func(yield func(key, value string) bool)

// readEntries takes a copy of the whole map, so that the loop over it may read
// other things.
func readEntries(op string, o abi.Object, f abi.Field) Entries {
	n := hostMapDump(o, f, free, room)
	for ; n > room; n = hostMapDump(o, f, free, room) {
		refill(n)
	}
	missing(op, "", n)
	dump := cut(n)
	return func(yield func(key, value string) bool) { abi.EachEntry(dump, yield) }
}

// readList returns the elements of a list or set.
func readList(op string, o abi.Object, f abi.Field) []string {
	n := hostListDump(o, f, free, room)
	for ; n > room; n = hostListDump(o, f, free, room) {
		refill(n)
	}
	missing(op, "", n)
	return elements(cut(n))
}

func elements(dump string) []string {
	var list []string
	abi.EachElement(dump, func(element string) bool {
		list = append(list, element)
		return true
	})
	return list
}

// handles returns the handles that a read found, which returned n.
func handles(op, key string, n int32) []abi.Object {
	missing(op, key, n)
	list := cut(n)
	all := make([]abi.Object, 0, len(list)/4)
	for ; len(list) >= 4; list = list[4:] {
		all = append(all, abi.Object(uint32(list[0])|uint32(list[1])<<8|uint32(list[2])<<16|uint32(list[3])<<24))
	}
	return all
}
