// Code generated from package abi by abi/internal/generate. DO NOT EDIT.

package native

import "github.com/wasmproxy/wasmproxy/abi"

// Host answers a plugin's calls of the host functions, under the same rules:
// results are a length, 0 or an abi.Errno, and buf is written only if all fits.
// Abort panics.
type Host interface {
	Get(object abi.Object, field abi.Field, buf []byte) int32
	GetI64(object abi.Object, field abi.Field, out []byte) int32
	MapGet(object abi.Object, field abi.Field, key string, buf []byte) int32
	MapDump(object abi.Object, field abi.Field, buf []byte) int32
	ListDump(object abi.Object, field abi.Field, buf []byte) int32
	CRIRaw(buf []byte) int32
	CgroupGet(object abi.Object, file string, buf []byte) int32
	PodFind(kind int32, name string) int32
	PodList(namespace string, buf []byte) int32
	ContainerList(pod abi.Object, buf []byte) int32
	SetI64(object abi.Object, field abi.Field, value int64) int32
	SetBytes(object abi.Object, field abi.Field, value string) int32
	MapSet(object abi.Object, field abi.Field, key string, value string) int32
	MapDel(object abi.Object, field abi.Field, key string) int32
	ListSet(object abi.Object, field abi.Field, list string) int32
	ListAdd(object abi.Object, field abi.Field, element string) int32
	ListDel(object abi.Object, field abi.Field, key string) int32
	CgroupSet(object abi.Object, file string, value string) int32
	Reject(code int32, reason string) int32
	Fail(reason string)
	Abort(reason string)
	Config(buf []byte) int32
	Log(level int32, text string)
	LogLevel() int32
	Metric(kind int32, name string, value int64) int32
	KVGet(key string, buf []byte) int32
	KVSet(key string, value string) int32
	KVDel(key string) int32
	Now() int64
	Random(buf []byte) int32
	Feature(feature abi.Feature) int32
}
