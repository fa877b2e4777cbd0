//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"encoding/binary"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// The counterpart of import.go for tests of plugins on the machine that builds them: the
// same functions, answered from what package sdktest was given, by the tables of package
// abi. They know nothing else of the proxy: names of cgroup files and the form of texts are
// not checked.

// host returns the call that runs.
func host() *native.Call {
	if native.Current == nil {
		panic("sdk: a handler runs only while the proxy or package sdktest calls it")
	}
	return native.Current
}

// lacks reports whether the plugin has not this capability.
func lacks(needs abi.Capability) bool { return !host().Has.Has(needs) }

// object returns an object, nil if there is none that the plugin may know.
func object(o abi.Object) *native.Object {
	if o >= abi.FirstHandle && lacks(abi.StoreRead) {
		return nil
	}
	return host().Objects[o]
}

// answer writes v to buf if it fits, and returns its length, or the error.
func answer(buf unsafe.Pointer, size int32, v string, errno abi.Errno) int32 {
	if errno != abi.OK {
		return int32(errno)
	}
	if len(v) <= int(size) {
		copy(unsafe.Slice((*byte)(buf), size), v)
	}
	return int32(len(v))
}

// field returns the value of a field.
func field[T any](o abi.Object, f abi.Field) (v T, errno abi.Errno) {
	of := object(o)
	if of == nil {
		return v, abi.NotFound
	}
	if info, _ := abi.FieldOf(of.Kind, f); lacks(info.Reading) {
		return v, abi.Denied
	}
	switch given := of.Fields[f].(type) {
	case T:
		return given, abi.OK
	case abi.Errno:
		return v, given
	}
	return v, abi.NotFound
}

// foundIf is the answer about something that needs a capability.
func foundIf(found bool, needs abi.Capability) abi.Errno {
	switch {
	case lacks(needs):
		return abi.Denied
	case !found:
		return abi.NotFound
	}
	return abi.OK
}

func hostGet(o abi.Object, f abi.Field, buf unsafe.Pointer, size int32) int32 {
	v, errno := field[string](o, f)
	return answer(buf, size, v, errno)
}

func hostGetI64(o abi.Object, f abi.Field, out unsafe.Pointer) int32 {
	v, errno := field[int64](o, f)
	if errno == abi.OK {
		*(*int64)(out) = v
	}
	return int32(errno)
}

func hostMapGet(o abi.Object, f abi.Field, key string, buf unsafe.Pointer, size int32) int32 {
	m, errno := field[map[string]string](o, f)
	v, ok := m[key]
	return answer(buf, size, v, min(errno, foundIf(ok || errno != abi.OK, 0)))
}

func hostMapDump(o abi.Object, f abi.Field, buf unsafe.Pointer, size int32) int32 {
	m, errno := field[map[string]string](o, f)
	dump := abi.AppendEntries(nil, func(yield func(key, value string) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			yield(key, m[key])
		}
	})
	return answer(buf, size, string(dump), errno)
}

func hostListDump(o abi.Object, f abi.Field, buf unsafe.Pointer, size int32) int32 {
	list, errno := field[[]string](o, f)
	return answer(buf, size, string(abi.AppendList(nil, list)), errno)
}

func hostCRIRaw(buf unsafe.Pointer, size int32) int32 {
	return answer(buf, size, string(host().Request), foundIf(host().Request != nil, abi.ReadRaw))
}

func hostCgroupGet(o abi.Object, file string, buf unsafe.Pointer, size int32) int32 {
	v, errno := fileOf(o, file)
	return answer(buf, size, v, errno)
}

// fileOf returns a file of an object's cgroup. That of a QoS class goes by the name of the class.
func fileOf(o abi.Object, file string) (string, abi.Errno) {
	of := object(o % abi.QOSClass)
	if of == nil {
		return "", foundIf(false, abi.CgroupRead)
	}
	v, ok := host().Files[of.ID()][file]
	if own, there := host().Files[of.Kind.String()][file]; of.Own && there {
		v, ok = own, true
	}
	if o >= abi.QOSClass {
		v, ok = host().Files[of.Text(abi.PodQoS)][file] // a container has none
	}
	return v, foundIf(ok, abi.CgroupRead)
}

func hostCgroupRead(objects, files string, buf unsafe.Pointer, size int32) int32 {
	var entries []string
	for ; len(objects) >= 4; objects = objects[4:] {
		o := abi.Object(binary.LittleEndian.Uint32([]byte(objects[:4])))
		abi.EachElement(files, func(file string) bool {
			text, errno := fileOf(o, file)
			key := ""
			if errno != abi.OK {
				key = FormatInt(int64(errno))
			}
			entries = append(entries, key, text)
			return true
		})
	}
	switch {
	case lacks(abi.CgroupRead):
		return int32(abi.Denied)
	case len(entries) == 0:
		return int32(abi.Invalid)
	}
	dump := abi.AppendEntries(nil, func(yield func(key, value string) bool) {
		for ; len(entries) > 0; entries = entries[2:] {
			yield(entries[0], entries[1])
		}
	})
	if len(dump) > maxRead {
		return int32(abi.TooLarge)
	}
	return answer(buf, size, string(dump), abi.OK)
}

// maxRead is the most that one call of cgroup_read returns, in bytes.
const maxRead = 1 << 20

// storeHandles returns those of the store that match, sorted by id.
func storeHandles(match func(*native.Object) bool) []abi.Object {
	var all []abi.Object
	for handle, o := range host().Objects {
		if handle >= abi.FirstHandle && match(o) {
			all = append(all, handle)
		}
	}
	slices.SortFunc(all, func(a, b abi.Object) int {
		return strings.Compare(host().Objects[a].ID(), host().Objects[b].ID())
	})
	return all
}

func hostPodFind(kind int32, name string) int32 {
	found := storeHandles(func(o *native.Object) bool {
		switch {
		case kind == abi.ByContainerID || o.Kind == abi.Container:
			return kind == abi.ByContainerID && o.Kind == abi.Container && o.ID() == name
		case kind == abi.ByPodName:
			return o.Text(abi.PodNamespace)+"/"+o.Text(abi.PodName) == name
		}
		return o.Text(map[int32]abi.Field{abi.ByPodID: abi.PodID, abi.ByPodUID: abi.PodUID}[kind]) == name
	})
	if errno := foundIf(len(found) > 0, abi.StoreRead); errno != abi.OK {
		return int32(errno)
	}
	return int32(found[0])
}

func hostPodList(namespace string, buf unsafe.Pointer, size int32) int32 {
	return answerHandles(buf, size, true, storeHandles(func(o *native.Object) bool {
		return o.Kind == abi.Pod && (namespace == "" || o.Text(abi.PodNamespace) == namespace)
	}))
}

func hostContainerList(pod abi.Object, buf unsafe.Pointer, size int32) int32 {
	if pod == abi.Node {
		all := storeHandles(func(o *native.Object) bool { return o.Kind == abi.Container })
		slices.SortStableFunc(all, func(a, b abi.Object) int {
			return strings.Compare(host().Objects[a].Pod.ID(), host().Objects[b].Pod.ID())
		})
		return answerHandles(buf, size, true, all)
	}
	of := object(pod)
	return answerHandles(buf, size, of != nil && of.Kind == abi.Pod, storeHandles(func(o *native.Object) bool {
		return o.Kind == abi.Container && of != nil && o.Pod == of
	}))
}

func answerHandles(buf unsafe.Pointer, size int32, found bool, list []abi.Object) int32 {
	var b []byte
	for _, handle := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(handle))
	}
	return answer(buf, size, string(b), foundIf(found, abi.StoreRead))
}

func hostConfig(buf unsafe.Pointer, size int32) int32 {
	return answer(buf, size, host().Config, abi.OK)
}

func hostNow() int64 { return host().Time }

func hostRandom(buf unsafe.Pointer, size int32) int32 {
	host().Random.Read(unsafe.Slice((*byte)(buf), size))
	return 0
}

func hostFeature(f abi.Feature) int32 {
	has := map[abi.Feature]int32{abi.FeatureUpdate: 1, abi.FeatureKV: 1}
	if host().Cgroup > 0 {
		has[abi.FeatureCgroupFiles], has[abi.FeatureCgroupV2] = 1, int32(host().Cgroup-1)
	}
	return has[f]
}

func hostLog(level int32, text string) {
	host().Log(slog.Level(4*(level-abi.LogInfo)), text) // slog's levels are four apart
}

func hostLogLevel() int32 { return abi.LogDebug }

func hostFail(reason string)  { host().Failure = reason }
func hostAbort(reason string) { panic("sdktest: the plugin aborted: " + reason) }

func hostReject(code int32, reason string) int32 {
	switch code {
	case abi.RejectInvalidArgument, abi.RejectPermissionDenied, abi.RejectResourceExhausted, abi.RejectFailedPrecondition:
		host().Rejection = &native.Rejection{Code: uint32(code), Reason: reason}
		return 0
	}
	return int32(abi.Invalid)
}

func hostMetric(kind int32, name string, v int64) int32 {
	switch {
	case lacks(abi.WriteMetric):
		return int32(abi.Denied)
	case kind == abi.MetricSet:
		host().Metrics[name] = v
	default:
		host().Metrics[name] += v
	}
	return 0
}

func hostKVGet(key string, buf unsafe.Pointer, size int32) int32 {
	v, ok := host().KV[key]
	return answer(buf, size, v, foundIf(ok, abi.StateKV))
}

func hostKVSet(key, v string) int32 { return keep(func() { host().KV[key] = v }) }

func hostKVDel(key string) int32 { return keep(func() { delete(host().KV, key) }) }

func keep(write func()) int32 {
	switch {
	case lacks(abi.StateKV):
		return int32(abi.Denied)
	case host().Hook == 0:
		return int32(abi.ReadOnly)
	}
	write()
	return 0
}
