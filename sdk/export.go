//go:build wasip1 || tinygo.wasm

package sdk

import (
	"runtime"
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The exports of a guest, all in this one file; export_native.go is its
// counterpart. Author's code never runs but under hook, configure and init.

// manifestJSON keeps the manifest where wp_manifest says it is.
var manifestJSON []byte

//go:wasmexport wp_abi
func exportABI() int32 { return abi.Version }

//go:wasmexport wp_manifest
func exportManifest() int64 {
	manifestJSON = manifest()
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(manifestJSON))))<<32 | int64(len(manifestJSON))
}

//go:wasmexport wp_configure
func exportConfigure() int32 {
	result := configure()
	if runtime.Compiler == "gc" {
		warm()
	}
	return yielded(result)
}

//go:wasmexport wp_hook
func exportHook(hook int32) int32 { return yielded(dispatch(abi.Hook(hook))) }

// warm has standard Go's allocator take memory for small objects of each size, with
// pointers and without. The host puts memory back to what it is after wp_configure: without
// this, each call that allocates would begin with taking it, which is most of what it
// takes.
func warm() {
	for size := 8; size <= 128; size += 8 {
		warmed.bytes = make([]byte, size)
		warmed.pointers = make([]*byte, size/8)
	}
	warmed.pointers = make([]*byte, 208/8) // what maps of strings to numbers consist of
	warmed.pointers = make([]*byte, 288/8) // and of strings to strings
	warmed.bytes, warmed.pointers = nil, nil
}

// warmed makes what warm allocates escape.
var warmed struct {
	bytes    []byte
	pointers []*byte
}

// yielded gives Go's own goroutines a turn before control leaves the guest, now and
// then. Standard Go sweeps and runs finalizers in them, and they would get none in a
// guest that does nothing but return. It takes as long as some host calls, and where the
// host forgets after each call what the guest did, the count with it, there is nothing to
// sweep. TinyGo has no scheduler here.
func yielded(result int32) int32 {
	if runtime.Compiler == "gc" {
		if returns++; returns%64 == 0 {
			runtime.Gosched()
		}
	}
	return result
}

// returns is how often control has left the guest since its state was last reset.
var returns uint32
