// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

//go:build wasip1 || tinygo.wasm

package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The host functions. ABI.md says what each does. What is not called is not imported.

//go:wasmimport wp1 get
//go:noescape
func hostGet(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 get_i64
//go:noescape
func hostGetI64(object abi.Object, field abi.Field, out unsafe.Pointer) int32

//go:wasmimport wp1 map_get
//go:noescape
func hostMapGet(object abi.Object, field abi.Field, key string, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 map_dump
//go:noescape
func hostMapDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 list_dump
//go:noescape
func hostListDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 cri_raw
//go:noescape
func hostCRIRaw(buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 cgroup_get
//go:noescape
func hostCgroupGet(object abi.Object, file string, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 pod_find
//go:noescape
func hostPodFind(kind int32, name string) int32

//go:wasmimport wp1 pod_list
//go:noescape
func hostPodList(namespace string, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 container_list
//go:noescape
func hostContainerList(pod abi.Object, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 set_i64
//go:noescape
func hostSetI64(object abi.Object, field abi.Field, value int64) int32

//go:wasmimport wp1 set_bytes
//go:noescape
func hostSetBytes(object abi.Object, field abi.Field, value string) int32

//go:wasmimport wp1 map_set
//go:noescape
func hostMapSet(object abi.Object, field abi.Field, key string, value string) int32

//go:wasmimport wp1 map_del
//go:noescape
func hostMapDel(object abi.Object, field abi.Field, key string) int32

//go:wasmimport wp1 list_set
//go:noescape
func hostListSet(object abi.Object, field abi.Field, list string) int32

//go:wasmimport wp1 list_add
//go:noescape
func hostListAdd(object abi.Object, field abi.Field, element string) int32

//go:wasmimport wp1 list_del
//go:noescape
func hostListDel(object abi.Object, field abi.Field, key string) int32

//go:wasmimport wp1 cgroup_set
//go:noescape
func hostCgroupSet(object abi.Object, file string, value string) int32

//go:wasmimport wp1 reject
//go:noescape
func hostReject(code int32, reason string) int32

//go:wasmimport wp1 fail
//go:noescape
func hostFail(reason string)

//go:wasmimport wp1 abort
//go:noescape
func hostAbort(reason string)

//go:wasmimport wp1 config
//go:noescape
func hostConfig(buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 log
//go:noescape
func hostLog(level int32, text string)

//go:wasmimport wp1 log_level
//go:noescape
func hostLogLevel() int32

//go:wasmimport wp1 metric
//go:noescape
func hostMetric(kind int32, name string, value int64) int32

//go:wasmimport wp1 kv_get
//go:noescape
func hostKVGet(key string, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 kv_set
//go:noescape
func hostKVSet(key string, value string) int32

//go:wasmimport wp1 kv_del
//go:noescape
func hostKVDel(key string) int32

//go:wasmimport wp1 now
//go:noescape
func hostNow() int64

//go:wasmimport wp1 random
//go:noescape
func hostRandom(buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 feature
//go:noescape
func hostFeature(feature abi.Feature) int32

//go:wasmimport wp1 cgroup_read
//go:noescape
func hostCgroupRead(objects string, files string, buf unsafe.Pointer, size int32) int32

//go:wasmimport wp1 withdraw
//go:noescape
func hostWithdraw(object abi.Object, field abi.Field, key string) int32

//go:wasmimport wp1 conflict
//go:noescape
func hostConflict(buf unsafe.Pointer, size int32) int32
