//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"encoding/binary"
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// The counterpart of export.go for tests of plugins on the machine that
// builds them: the same functions, answered by package sdktest.

func init() {
	native.Guest.Manifest = manifest
	native.Guest.Configure = configure
	native.Guest.Hook = dispatch
}

func host() native.Host {
	if native.Current == nil {
		panic("sdk: a handler runs only while the proxy or package sdktest calls it")
	}
	return native.Current
}

func bytesAt(buf unsafe.Pointer, size uint32) []byte { return unsafe.Slice((*byte)(buf), size) }

func hostGet(o abi.Object, f abi.Field, buf unsafe.Pointer, size uint32) int32 {
	return host().Get(o, f, bytesAt(buf, size))
}

func hostGetInt64(o abi.Object, f abi.Field, out unsafe.Pointer) int32 {
	v, errno := host().GetInt64(o, f)
	binary.LittleEndian.PutUint64(bytesAt(out, 8), uint64(v))
	return int32(errno)
}

func hostMapGet(o abi.Object, f abi.Field, key string, buf unsafe.Pointer, size uint32) int32 {
	return host().MapGet(o, f, key, bytesAt(buf, size))
}

func hostMapDump(o abi.Object, f abi.Field, buf unsafe.Pointer, size uint32) int32 {
	return host().MapDump(o, f, bytesAt(buf, size))
}

func hostPodFind(kind int32, name string) int32 { return host().PodFind(kind, name) }

func hostContainerList(pod abi.Object, buf unsafe.Pointer, size uint32) int32 {
	return host().ContainerList(pod, bytesAt(buf, size))
}

func hostSetInt64(o abi.Object, f abi.Field, v int64) int32  { return host().SetInt64(o, f, v) }
func hostSetBytes(o abi.Object, f abi.Field, v string) int32 { return host().SetBytes(o, f, v) }
func hostMapSet(o abi.Object, f abi.Field, key, v string) int32 {
	return host().MapSet(o, f, key, v)
}
func hostMapDel(o abi.Object, f abi.Field, key string) int32 { return host().MapDel(o, f, key) }
func hostCgroupSet(o abi.Object, file, v string) int32       { return host().CgroupSet(o, file, v) }
func hostReject(code int32, reason string) int32             { return host().Reject(code, reason) }
func hostFail(reason string)                                 { host().Fail(reason) }
func hostAbort(reason string)                                { host().Abort(reason) }
func hostConfig(buf unsafe.Pointer, size uint32) int32       { return host().Config(bytesAt(buf, size)) }
func hostLog(level int32, message string)                    { host().Log(level, message) }
func hostNow() int64                                         { return host().Now() }
