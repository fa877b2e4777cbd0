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
func exportConfigure() int32 { return yielded(configure()) }

//go:wasmexport wp_hook
func exportHook(hook int32) int32 { return yielded(dispatch(abi.Hook(hook))) }

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
