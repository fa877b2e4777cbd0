package wasm

import (
	"context"
	"fmt"
	"slices"
	"unsafe"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// hostFunction is one function that guests may import.
type hostFunction struct {
	signature
	run    func(context.Context, *frame) int64 // its result, ignored if it has none
	needs  abi.Capability                      // without which it answers DENIED and looks at no argument
	denied bool                                // it does nothing but answer an error
	row    *abi.Function                       // of the ABI's table; nil of WASI's, and of what stands in for another
	asked  bool                                // watchers of a call are told what it was asked
}

// signature is the type of a function.
type signature = binary.Signature

// signatureOf turns a row of the ABI's table into a type. 0 is no result.
func signatureOf(params []abi.ValueType, result abi.ValueType) signature {
	s := signature{Params: valueString(params)}
	if result != 0 {
		s.Results = valueString([]abi.ValueType{result})
	}
	return s
}

func valueString(types []abi.ValueType) string {
	b := make([]byte, len(types))
	for i, t := range types {
		b[i] = binary.I32
		if t == abi.I64 {
			b[i] = binary.I64
		}
	}
	return string(b)
}

// hostFunctions holds them by module and name.
var hostFunctions = map[string]map[string]hostFunction{
	abi.Module: wp1(),
	wasiModule: wasi(),
}

// wp1 gives each row of the ABI's table its implementation.
func wp1() map[string]hostFunction {
	functions := map[string]hostFunction{}
	for i := range abi.Functions {
		row := &abi.Functions[i]
		var params []abi.ValueType
		for _, p := range row.Params {
			params = append(params, p.Type)
		}
		functions[row.Name] = hostFunction{
			signature: signatureOf(params, row.Result),
			needs:     row.Needs,
			run:       implementations[row.Name],
			row:       row,
			asked:     !slices.Contains(unasked, row.Name),
		}
	}
	return functions
}

var implementations = map[string]func(context.Context, *frame) int64{
	"get": get, "get_i64": getInt64, "map_get": mapGet, "map_dump": mapDump, "list_dump": listDump,
	"cri_raw": criRaw, "cgroup_get": withText(1, cgroupGet),
	"pod_find": withText(1, podFind), "pod_list": withText(0, podList), "container_list": containerList,
	"set_i64": setInt64, "set_bytes": withText(2, setBytes), "map_set": withPair(2, mapSet), "map_del": withText(2, mapDelete),
	"list_set": withText(2, listSet), "list_add": withText(2, listAdd), "list_del": withText(2, listDelete), "cgroup_set": withPair(1, cgroupSet),
	"reject": reject, "fail": fail, "abort": abort,
	"config": config, "log": log, "log_level": logLevel, "metric": withText(1, metric),
	"kv_get": withText(0, kvGet), "kv_set": withPair(0, kvSet), "kv_del": withText(0, kvDelete),
	"now": now, "random": random, "feature": feature,
	"cgroup_read": cgroupRead,
	"withdraw":    withText(2, withdraw), "conflict": conflict,
}

// instantiateHost adds to a runtime the host functions that a module imports, and the one that
// its metering calls.
// All of them would take longer than to compile a small module.
func instantiateHost(ctx context.Context, r wazero.Runtime, m *preflight.Outline) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, i := range m.Imports {
		if builders[i.Module] == nil {
			builders[i.Module] = r.NewHostModuleBuilder(i.Module)
		}
		f, ok := hostFunctions[i.Module][i.Name]
		if !ok { // check has found it to be optional
			f = hostFunction{signature: i.Signature, run: func(context.Context, *frame) int64 { return int64(abi.Unsupported) }}
		}
		builders[i.Module].NewFunctionBuilder().
			WithGoModuleFunction(f.bind(i.Name), []api.ValueType(f.Params), []api.ValueType(f.Results)).
			Export(i.Name)
	}
	i64 := []api.ValueType{api.ValueTypeI64}
	builders[fuel.Module] = r.NewHostModuleBuilder(fuel.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), i64, i64).Export(fuel.Refuel)
	for module, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("instantiating the host functions of %s: %w", module, err)
		}
	}
	return nil
}

// bind makes f callable by guests. The call's state comes with the context, which
// costs less than a look-up by instance and shares nothing.
func (f hostFunction) bind(name string) api.GoModuleFunc {
	returns := f.Results != ""
	narrow := returns && f.Results[0] == api.ValueTypeI32
	return func(ctx context.Context, _ api.Module, stack []uint64) {
		at, ctx := frameOf(ctx)
		at.name, at.row, at.stack = name, f.row, stack
		if at.hostCalls++; at.hostCalls > at.meter.hostCalls {
			panic(at.tooManyCalls())
		}
		result := int64(abi.Denied)
		if at.watch != nil {
			result = f.watched(ctx, at)
		} else if at.of.has.Has(f.needs) {
			result = f.run(ctx, at)
		}
		if result < 0 {
			at.refused(ctx, abi.Errno(result))
		}
		at.charge(ctx)
		switch {
		case narrow:
			stack[0] = api.EncodeI32(int32(result))
		case returns:
			stack[0] = uint64(result)
		}
	}
}

// maxArgument bounds what the host looks at of one argument, in bytes: as much as a
// change may have with its key.
const maxArgument = 256 << 10

// frame is one call of a host function: who calls, with what arguments. A guest has one,
// since it makes one call at a time.
type frame struct {
	*call
	name   string
	row    *abi.Function // of the function; nil if it is not one of the ABI
	memory api.Memory
	stack  []uint64
}

// frameOf returns the frame of the guest that runs in ctx, and its caller's context. wazero
// hands on the very context that it was given, which is quicker to look at than a value, but
// may wrap it.
func frameOf(ctx context.Context) (*frame, context.Context) {
	if c, ok := ctx.(*callContext); ok {
		return c.frame, c.Context
	}
	return ctx.Value(frameKey{}).(*frame), ctx
}

func (f *frame) i32(i int) int32       { return api.DecodeI32(f.stack[i]) }
func (f *frame) field(i int) abi.Field { return abi.Field(f.i32(i)) }

// object returns an argument that is an object. A guest that may not look others up has no
// handle: what it guesses belongs to an earlier plugin of the event.
func (f *frame) object(i int) abi.Object {
	o := abi.Object(f.i32(i))
	if of(o) >= abi.FirstHandle && !f.of.has.Has(abi.StoreRead) {
		return noObject
	}
	return o
}

// readable returns an argument that is an object, which the guest may find.
func (f *frame) readable(i int) abi.Object { return f.found(f.object(i)) }

// found returns an object, or noObject if the guest could not have found it: another plugin of the event has.
func (f *frame) found(o abi.Object) abi.Object {
	handle := of(o)
	if handle < abi.FirstHandle {
		return o
	}
	if !f.of.has.Has(abi.StoreRead) || !f.event.Within(handle, f.adj.ReadBounds()) {
		return noObject
	}
	return o
}

// of returns the pod of a QoS class, and what is no QoS class as it is.
func of(o abi.Object) abi.Object {
	if pod, ok := o.OfQOSClass(); ok {
		return pod
	}
	return o
}

// noObject is the number of no object.
const noObject = abi.FirstHandle - 1

// bytes returns the part of the guest's memory that arguments i and i+1 name by
// pointer and length. It is the memory itself, valid until the guest runs on. A
// bad pointer traps.
func (f *frame) bytes(i int) []byte {
	return f.region(api.DecodeU32(f.stack[i]), api.DecodeU32(f.stack[i+1]))
}

func (f *frame) region(ptr, length uint32) []byte {
	if length == 0 {
		return nil
	}
	b, ok := f.memory.Read(ptr, length)
	if !ok {
		panic(trapf("%s: %d bytes at %#x are outside its memory of %d bytes", f.name, length, ptr, f.memory.Size()))
	}
	return b
}

// withText lends a host function the string that arguments i and i+1 name; see borrowed.
func withText(i int, run func(context.Context, *frame, string) int64) func(context.Context, *frame) int64 {
	return func(ctx context.Context, f *frame) int64 {
		text, errno := f.borrowed(i)
		if errno != abi.OK {
			return int64(errno)
		}
		return run(ctx, f, text)
	}
}

// withPair lends a host function two strings.
func withPair(i int, run func(context.Context, *frame, string, string) int64) func(context.Context, *frame) int64 {
	return func(ctx context.Context, f *frame) int64 {
		a, errno := f.borrowed(i)
		if errno != abi.OK {
			return int64(errno)
		}
		b, errno := f.borrowed(i + 2)
		if errno != abi.OK {
			return int64(errno)
		}
		return run(ctx, f, a, b)
	}
}

// borrowed is the string that arguments i and i+1 name, not copied: it is the guest's memory, and
// changes when the guest runs on. What keeps it clones it. A guest that is refused all that it asks for
// costs no memory so.
func (f *frame) borrowed(i int) (string, abi.Errno) {
	b := f.bytes(i)
	if len(b) > maxArgument {
		return "", abi.TooLarge
	}
	f.moved += len(b)
	return unsafe.String(unsafe.SliceData(b), len(b)), abi.OK
}

// answer writes v to the buffer that arguments i and i+1 name, if it fits, and
// returns its length: a guest asks again with a larger buffer, or asks for the
// length with a buffer of 0.
func answer[T string | []byte](f *frame, i int, v T, errno abi.Errno) int64 {
	buf := f.bytes(i)
	if errno != abi.OK {
		return int64(errno)
	}
	if len(v) <= len(buf) {
		copy(buf, v)
	}
	f.moved += len(v) // to find it took the host as long
	if f.watch != nil {
		f.noted = append([]byte{}, v...)
	}
	return int64(len(v))
}
