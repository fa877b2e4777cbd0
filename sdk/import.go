// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

//go:build wasip1 || tinygo.wasm

package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The host functions. ABI.md says what each does. What is not called is not imported.

//go:wasmimport wp1 view
func hostView(object abi.Object, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 get
func hostGet(object abi.Object, field abi.Field, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 get_i64
func hostGetI64(object abi.Object, field abi.Field, out unsafe.Pointer) int32

//go:wasmimport wp1 map_get
func hostMapGet(object abi.Object, field abi.Field, key string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 map_dump
func hostMapDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 list_dump
func hostListDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 cri_raw
func hostCRIRaw(buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 cgroup_get
func hostCgroupGet(object abi.Object, file string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 pod_find
func hostPodFind(kind int32, name string) int32

//go:wasmimport wp1 pod_list
func hostPodList(namespace string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 container_list
func hostContainerList(pod abi.Object, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 set_i64
func hostSetI64(object abi.Object, field abi.Field, value int64) int32

//go:wasmimport wp1 set_bytes
func hostSetBytes(object abi.Object, field abi.Field, value string) int32

//go:wasmimport wp1 map_set
func hostMapSet(object abi.Object, field abi.Field, key string, value string) int32

//go:wasmimport wp1 map_del
func hostMapDel(object abi.Object, field abi.Field, key string) int32

//go:wasmimport wp1 list_set
func hostListSet(object abi.Object, field abi.Field, list string) int32

//go:wasmimport wp1 list_add
func hostListAdd(object abi.Object, field abi.Field, element string) int32

//go:wasmimport wp1 list_del
func hostListDel(object abi.Object, field abi.Field, key string) int32

//go:wasmimport wp1 cgroup_set
func hostCgroupSet(object abi.Object, file string, value string) int32

//go:wasmimport wp1 reject
func hostReject(code int32, reason string) int32

//go:wasmimport wp1 fail
func hostFail(reason string)

//go:wasmimport wp1 abort
func hostAbort(reason string)

//go:wasmimport wp1 config
func hostConfig(buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 log
func hostLog(level int32, text string)

//go:wasmimport wp1 log_level
func hostLogLevel() int32

//go:wasmimport wp1 metric
func hostMetric(kind int32, name string, value int64) int32

//go:wasmimport wp1 kv_get
func hostKVGet(key string, buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 kv_set
func hostKVSet(key string, value string) int32

//go:wasmimport wp1 kv_del
func hostKVDel(key string) int32

//go:wasmimport wp1 now
func hostNow() int64

//go:wasmimport wp1 random
func hostRandom(buf unsafe.Pointer, size uint32) int32

//go:wasmimport wp1 feature
func hostFeature(feature abi.Feature) int32
