// Package native joins package sdk and package sdktest when a plugin is built
// for the machine that tests it, where there is no WebAssembly host to import
// functions from. Builds to WebAssembly do not contain it.
package native

import "github.com/wasmproxy/wasmproxy/abi"

// Host answers a plugin's calls of the host functions, under the same rules:
// results are a length, 0 or an abi.Errno, and buf is written only if all fits.
type Host interface {
	Get(o abi.Object, f abi.Field, buf []byte) int32
	GetInt64(o abi.Object, f abi.Field) (int64, abi.Errno)
	MapGet(o abi.Object, f abi.Field, key string, buf []byte) int32
	MapDump(o abi.Object, f abi.Field, buf []byte) int32
	PodFind(kind int32, name string) int32
	ContainerList(pod abi.Object, buf []byte) int32
	SetInt64(o abi.Object, f abi.Field, v int64) int32
	SetBytes(o abi.Object, f abi.Field, v string) int32
	MapSet(o abi.Object, f abi.Field, key, v string) int32
	MapDel(o abi.Object, f abi.Field, key string) int32
	CgroupSet(o abi.Object, file, v string) int32
	Reject(code int32, reason string) int32
	Fail(reason string)
	Abort(reason string) // panics
	Config(buf []byte) int32
	Log(level int32, message string)
	Now() int64
}

// Guest is a plugin's exports, set by package sdk.
var Guest struct {
	Manifest  func() []byte
	Configure func() int32
	Hook      func(abi.Hook) int32
}

// Current is the host of the call that runs, nil between calls. Whoever sets it
// sees to it that calls do not overlap, as they never do in one guest.
var Current Host
