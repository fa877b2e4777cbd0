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

// yielded gives Go's own goroutines a turn before control leaves the guest.
// Standard Go sweeps and runs finalizers in them, and they would get none in a
// guest that does nothing but return. TinyGo has no scheduler here.
func yielded(result int32) int32 {
	if runtime.Compiler == "gc" {
		runtime.Gosched()
	}
	return result
}

// The host functions. ABI.md says what each does.

//go:wasmimport wp1 get
func hostGet(o abi.Object, f abi.Field, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 get_i64
func hostGetInt64(o abi.Object, f abi.Field, out unsafe.Pointer) int32

//go:wasmimport wp1 map_get
func hostMapGet(o abi.Object, f abi.Field, key string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 map_dump
func hostMapDump(o abi.Object, f abi.Field, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 pod_find
func hostPodFind(kind int32, name string) int32

//go:wasmimport wp1 container_list
func hostContainerList(pod abi.Object, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 set_i64
func hostSetInt64(o abi.Object, f abi.Field, v int64) int32

//go:wasmimport wp1 set_bytes
func hostSetBytes(o abi.Object, f abi.Field, v string) int32

//go:wasmimport wp1 map_set
func hostMapSet(o abi.Object, f abi.Field, key, v string) int32

//go:wasmimport wp1 map_del
func hostMapDel(o abi.Object, f abi.Field, key string) int32

//go:wasmimport wp1 cgroup_set
func hostCgroupSet(o abi.Object, file, v string) int32

//go:wasmimport wp1 reject
func hostReject(code int32, reason string) int32

//go:wasmimport wp1 fail
func hostFail(reason string)

//go:wasmimport wp1 abort
func hostAbort(reason string)

//go:wasmimport wp1 config
func hostConfig(buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 log
func hostLog(level int32, message string)

//go:wasmimport wp1 now
func hostNow() int64
