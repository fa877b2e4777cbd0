package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// What the host writes for a guest goes to memory that nobody has yet: to the beginning of
// a chunk, where it is cut off. So what a handler is given was neither allocated nor
// copied, and none of its bytes is ever written again. A guest runs one call at a time, so
// one chunk is enough.
var (
	free unsafe.Pointer // what is left of the chunk
	room int32          // its size in bytes
)

// Sizes of a chunk in bytes. A text that a plugin keeps keeps its chunk from the collector,
// hence small ones where memory is kept.
const (
	chunk     = 2 << 10
	chunkKept = 256
)

// refill begins a chunk of n bytes or more. It has a byte that is never cut off, since free
// must not point behind it.
func refill(n int32) {
	size := int32(chunk)
	if plugin.manifest.State == abi.StateInstance {
		size = chunkKept
	}
	size = max(n, size)
	fresh := make([]byte, size+1) // first: standard Go may run another goroutine here
	free, room = unsafe.Pointer(unsafe.SliceData(fresh)), size
}

// cut takes off the n bytes that the host has written, none if n is less than that.
func cut(n int32) string {
	n = max(n, 0)
	s := unsafe.String((*byte)(free), n)
	free = unsafe.Add(free, n)
	room -= n
	return s
}
