package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/tune"
)

// counted is an object and how often the handler that runs has read a number or
// text of it.
type counted struct {
	object abi.Object
	reads  int
	view   view // "" until it is worth its price
}

// views holds the objects that were read last, each at its number modulo 8. The event, its
// pod and container and the node are below 4.
var views [8]counted

// counting tells that views may hold something.
var counting = true

// forget drops the views, because the next call is about something else.
func forget() {
	for i := range views {
		views[i] = counted{object: abi.Object(i)}
	}
	counting = false
}

func countOf(o abi.Object) *counted { return &views[o&7] }

// viewOf returns the view of an object that was viewed.
func viewOf(o abi.Object) view { return countOf(o).view }

// viewed counts a read of an object, and reports whether there is a view of it by now.
func viewed(o abi.Object) bool {
	c := countOf(o)
	c.reads++
	counting = true
	return (c.reads > tune.ViewAfter || c.object != o) && c.fetched(o)
}

// fetched reports whether there is a view of the object. With the first read that it is
// worth its price for it gets one; where there is none, reads go on one by one. In line it
// would cost every read.
//
//go:noinline
func (c *counted) fetched(o abi.Object) bool {
	if c.object != o {
		*c = counted{object: o, reads: 1}
	}
	if c.reads != tune.ViewAfter+1 {
		return c.view != ""
	}
	n := hostView(o, free, room)
	for n > room {
		refill(n)
		n = hostView(o, free, room)
	}
	c.view = view(cut(n))
	return n >= viewHead
}

// view is abi.View for numbers and texts alone, and trusts the host, whom a guest
// cannot but trust. That makes it several times faster where each instruction counts.
type view string

const (
	viewHead  = 8
	viewEntry = 16
)

// word loads a number of 32 bits; WebAssembly and where tests run are little endian.
func (v view) word(at uint32) uint32 {
	return *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.StringData(string(v))), at))
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
