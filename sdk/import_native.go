// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The counterpart of import.go for tests of plugins on the machine that builds
// them: the same functions, answered by package sdktest.

func hostGet(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32 {
	return host().Get(object, field, bytesAt(buf, size))
}

func hostGetI64(object abi.Object, field abi.Field, out unsafe.Pointer) int32 {
	return host().GetI64(object, field, bytesAt(out, 8))
}

func hostMapGet(object abi.Object, field abi.Field, key string, buf unsafe.Pointer, size int32) int32 {
	return host().MapGet(object, field, key, bytesAt(buf, size))
}

func hostMapDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32 {
	return host().MapDump(object, field, bytesAt(buf, size))
}

func hostListDump(object abi.Object, field abi.Field, buf unsafe.Pointer, size int32) int32 {
	return host().ListDump(object, field, bytesAt(buf, size))
}

func hostCRIRaw(buf unsafe.Pointer, size int32) int32 { return host().CRIRaw(bytesAt(buf, size)) }

func hostCgroupGet(object abi.Object, file string, buf unsafe.Pointer, size int32) int32 {
	return host().CgroupGet(object, file, bytesAt(buf, size))
}

func hostPodFind(kind int32, name string) int32 { return host().PodFind(kind, name) }

func hostPodList(namespace string, buf unsafe.Pointer, size int32) int32 {
	return host().PodList(namespace, bytesAt(buf, size))
}

func hostContainerList(pod abi.Object, buf unsafe.Pointer, size int32) int32 {
	return host().ContainerList(pod, bytesAt(buf, size))
}

func hostSetI64(object abi.Object, field abi.Field, value int64) int32 {
	return host().SetI64(object, field, value)
}

func hostSetBytes(object abi.Object, field abi.Field, value string) int32 {
	return host().SetBytes(object, field, value)
}

func hostMapSet(object abi.Object, field abi.Field, key string, value string) int32 {
	return host().MapSet(object, field, key, value)
}

func hostMapDel(object abi.Object, field abi.Field, key string) int32 {
	return host().MapDel(object, field, key)
}

func hostListSet(object abi.Object, field abi.Field, list string) int32 {
	return host().ListSet(object, field, list)
}

func hostListAdd(object abi.Object, field abi.Field, element string) int32 {
	return host().ListAdd(object, field, element)
}

func hostListDel(object abi.Object, field abi.Field, key string) int32 {
	return host().ListDel(object, field, key)
}

func hostCgroupSet(object abi.Object, file string, value string) int32 {
	return host().CgroupSet(object, file, value)
}

func hostReject(code int32, reason string) int32 { return host().Reject(code, reason) }

func hostFail(reason string) { host().Fail(reason) }

func hostAbort(reason string) { host().Abort(reason) }

func hostConfig(buf unsafe.Pointer, size int32) int32 { return host().Config(bytesAt(buf, size)) }

func hostLog(level int32, text string) { host().Log(level, text) }

func hostLogLevel() int32 { return host().LogLevel() }

func hostMetric(kind int32, name string, value int64) int32 { return host().Metric(kind, name, value) }

func hostKVGet(key string, buf unsafe.Pointer, size int32) int32 {
	return host().KVGet(key, bytesAt(buf, size))
}

func hostKVSet(key string, value string) int32 { return host().KVSet(key, value) }

func hostKVDel(key string) int32 { return host().KVDel(key) }

func hostNow() int64 { return host().Now() }

func hostRandom(buf unsafe.Pointer, size int32) int32 { return host().Random(bytesAt(buf, size)) }

func hostFeature(feature abi.Feature) int32 { return host().Feature(feature) }
