package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/tune"
)

// viewed is an object and how often the handler that runs has read a number or
// text of it.
type viewed struct {
	object abi.Object
	reads  int
	view   view   // nil until it is worth its price
	buf    []byte // that the view is in, kept for the next
}

// views holds the event, its pod and container and the node at their numbers, and
// behind them the handle that was read last.
var views [abi.Node + 2]viewed

// forget drops the views, because the next call is about something else.
func forget() {
	for i := range views {
		views[i].object, views[i].reads, views[i].view = nothing, 0, nil
	}
}

// viewOf returns the view of an object that has been read often enough, else nil.
func viewOf(o abi.Object) view {
	v := &views[min(uint32(o), uint32(len(views)-1))]
	if v.object != o {
		v.object, v.reads, v.view = o, 0, nil
	}
	if v.reads++; v.reads == tune.ViewAfter+1 {
		v.fetch()
	}
	return v.view
}

// fetch gets the view. Without one, reads go on one by one.
func (v *viewed) fetch() {
	n := v.get()
	if int(n) > len(v.buf) {
		v.buf = make([]byte, n)
		n = v.get()
	}
	if n >= viewHead && int(n) <= len(v.buf) {
		v.view = v.buf[:n]
	}
}

func (v *viewed) get() int32 {
	return hostView(v.object, unsafe.Pointer(unsafe.SliceData(v.buf)), uint32(len(v.buf)))
}

// view is abi.View for numbers and texts alone, and trusts the host, whom a guest
// cannot but trust. That makes it several times faster where each instruction counts.
type view []byte

const (
	viewHead  = 8
	viewEntry = 16
)

// word loads a number of 32 bits; WebAssembly and where tests run are little endian.
func (v view) word(at uint32) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(v)), at))
}

// find returns where the payload of a field is, 0 if the view does not have it.
func (v view) find(f abi.Field) uint32 {
	low, high := uint32(0), v.word(4)
	for low < high {
		middle := (low + high) / 2
		at := viewHead + middle*viewEntry
		switch field := abi.Field(v.word(at)); {
		case field == f:
			return at + 8
		case field < f:
			low = middle + 1
		default:
			high = middle
		}
	}
	return 0
}

func (v view) int64(f abi.Field) (int64, bool) {
	at := v.find(f)
	if at == 0 {
		return 0, false
	}
	return int64(uint64(v.word(at)) | uint64(v.word(at+4))<<32), true
}

func (v view) text(f abi.Field) string {
	at := v.find(f)
	if at == 0 {
		return ""
	}
	return string(v[v.word(at):][:v.word(at+4)])
}
