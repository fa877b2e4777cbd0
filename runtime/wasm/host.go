package wasm

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

// hostFunction is one function that guests may import.
type hostFunction struct {
	signature
	run    func(frame) int64 // its result, ignored if it has none
	denied bool              // it does nothing but answer an error
}

// hostFunctions holds them by module and name.
var hostFunctions = map[string]map[string]hostFunction{
	abi.Module: wp1(),
	wasiModule: wasi(),
}

// wp1 gives each row of the ABI's table its implementation.
func wp1() map[string]hostFunction {
	functions := map[string]hostFunction{}
	for _, row := range abi.Functions {
		functions[row.Name] = hostFunction{signature: signatureOf(row), run: implementations[row.Name]}
	}
	return functions
}

var implementations = map[string]func(frame) int64{
	"get": get, "get_i64": getInt64, "map_get": mapGet, "map_dump": mapDump,
	"pod_find": podFind, "container_list": containerList,
	"set_i64": setInt64, "set_bytes": setBytes, "map_set": mapSet, "map_del": mapDelete, "cgroup_set": cgroupSet,
	"reject": reject, "fail": fail, "abort": abort,
	"config": config, "log": log, "now": now,
}

// instantiateHost adds to a runtime the host functions that a module imports.
// All of them would take longer than to compile a small module.
func instantiateHost(ctx context.Context, r wazero.Runtime, m *preflight.Outline) error {
	builders := map[string]wazero.HostModuleBuilder{}
	for _, i := range m.Imports {
		if builders[i.Module] == nil {
			builders[i.Module] = r.NewHostModuleBuilder(i.Module)
		}
		f := hostFunctions[i.Module][i.Name]
		builders[i.Module].NewFunctionBuilder().
			WithGoModuleFunction(f.bind(i.Name), []api.ValueType(f.Params), []api.ValueType(f.Results)).
			Export(i.Name)
	}
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
	return func(ctx context.Context, instance api.Module, stack []uint64) {
		c := ctx.Value(callKey{}).(*call)
		c.count()
		result := f.run(frame{call: c, name: name, memory: instance.Memory(), stack: stack})
		c.charge()
		switch f.Results {
		case string([]byte{api.ValueTypeI32}):
			stack[0] = api.EncodeI32(int32(result))
		case string([]byte{api.ValueTypeI64}):
			stack[0] = uint64(result)
		}
	}
}

// maxArgument bounds what is copied out of a guest for one argument. It is more
// than any value may have.
const maxArgument = 1 << 20

// frame is one call of a host function: who calls, with what arguments.
type frame struct {
	*call
	name   string
	memory api.Memory
	stack  []uint64
}

func (f frame) i32(i int) int32         { return api.DecodeI32(f.stack[i]) }
func (f frame) object(i int) abi.Object { return abi.Object(f.i32(i)) }
func (f frame) field(i int) abi.Field   { return abi.Field(f.i32(i)) }

// bytes returns the part of the guest's memory that arguments i and i+1 name by
// pointer and length. It is the memory itself, valid until the guest runs on. A
// bad pointer traps.
func (f frame) bytes(i int) []byte {
	return f.region(api.DecodeU32(f.stack[i]), api.DecodeU32(f.stack[i+1]))
}

func (f frame) region(ptr, length uint32) []byte {
	if length == 0 {
		return nil
	}
	b, ok := f.memory.Read(ptr, length)
	if !ok {
		panic(trapf("%s: %d bytes at %#x are outside its memory of %d bytes", f.name, length, ptr, f.memory.Size()))
	}
	return b
}

// text copies the string that arguments i and i+1 name.
func (f frame) text(i int) (string, abi.Errno) {
	b := f.bytes(i)
	if len(b) > maxArgument {
		return "", abi.TooLarge
	}
	f.moved += len(b)
	return string(b), abi.OK
}

// answer writes v to the buffer that arguments i and i+1 name, if it fits, and
// returns its length: a guest asks again with a larger buffer, or asks for the
// length with a buffer of 0.
func answer[T string | []byte](f frame, i int, v T, errno abi.Errno) int64 {
	buf := f.bytes(i)
	if errno != abi.OK {
		return int64(errno)
	}
	if len(v) <= len(buf) {
		f.moved += copy(buf, v)
	}
	return int64(len(v))
}
