package fuel_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// engines are the two ways to run a module.
var engines = map[string]func() wazero.RuntimeConfig{
	"compiler": wazero.NewRuntimeConfigCompiler, "interpreter": wazero.NewRuntimeConfigInterpreter,
}

// newEngines returns a runtime of each kind with the function that generated modules import.
func newEngines(t testing.TB) map[string]wazero.Runtime {
	runtimes := map[string]wazero.Runtime{}
	for name, config := range engines {
		r := newRuntime(t, config())
		double := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) { stack[0] = uint64(uint32(2 * stack[0])) })
		i32 := []api.ValueType{api.ValueTypeI32}
		if _, err := r.NewHostModuleBuilder("h").NewFunctionBuilder().WithGoModuleFunction(double, i32, i32).Export("f").Instantiate(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtimes[name] = r
	}
	return runtimes
}

// outcome is all that a run of a module leaves.
type outcome struct {
	calls   []string // results or traps
	memory  uint64
	pages   uint32
	globals [4]uint64
	fuel    []int64
}

// run calls each function of a module twice and returns what comes of it.
func run(t *testing.T, r wazero.Runtime, module []byte, functions []signature) (o outcome) {
	t.Helper()
	ctx := t.Context()
	m, err := r.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatalf("%v\n%x", err, module)
	}
	defer m.Close(ctx)
	left, metered := m.ExportedGlobal(fuel.Fuel).(api.MutableGlobal)
	for i := range 2 * len(functions) {
		n := i % len(functions)
		var args []uint64
		for j := range functions[n].params {
			args = append(args, uint64(i*j+1))
		}
		if metered {
			left.Set(math.MaxInt64)
			m.ExportedGlobal(fuel.Stack).(api.MutableGlobal).Set(math.MaxInt32)
		}
		m.ExportedGlobal("A").(api.MutableGlobal).Set(100)
		results, err := m.ExportedFunction(string(rune('a'+n))).Call(ctx, args...)
		o.calls = append(o.calls, show(results, functions[n].result, err))
		if metered {
			o.fuel = append(o.fuel, math.MaxInt64-int64(left.Get()))
		}
	}
	o.pages = m.Memory().Size() >> 16
	b, _ := m.Memory().Read(0, m.Memory().Size())
	sum := fnv.New64a()
	sum.Write(b)
	o.memory = sum.Sum64()
	for i := range o.globals {
		o.globals[i] = canonical(m.ExportedGlobal(string(rune('A'+i))).Get(), valueTypes[i])
	}
	return o
}

// canonical takes from a value what engines may choose: the bits of a NaN and the half
// that a small value does not use.
func canonical(v uint64, t byte) uint64 {
	switch t {
	case i32:
		return uint64(uint32(v))
	case f32:
		if f := math.Float32frombits(uint32(v)); f != f {
			return 1
		}
		return uint64(uint32(v))
	case f64:
		if f := math.Float64frombits(v); f != f {
			return 1
		}
	}
	return v
}

func show(results []uint64, t byte, err error) string {
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		return text
	}
	if len(results) == 0 {
		return "done"
	}
	return fmt.Sprintf("%#x", canonical(results[0], t))
}

// compare runs a module as it is and rewritten, on each engine: all that it can be told by
// is the same, and so is its fuel wherever and whenever it runs.
func compare(t *testing.T, runtimes map[string]wazero.Runtime, module []byte, functions []signature) (traps int) {
	t.Helper()
	rewritten, err := instrument(module, fuel.Options{Stack: math.MaxInt32})
	if err != nil {
		t.Fatalf("%v\n%x", err, module)
	}
	if again, _ := instrument(module, fuel.Options{Stack: math.MaxInt32}); !bytes.Equal(again, rewritten) {
		t.Fatalf("rewritten twice it differs\n%x", module)
	}
	var used []int64
	for name, r := range runtimes {
		original, metered, again := run(t, r, module, functions), run(t, r, rewritten, functions), run(t, r, rewritten, functions)
		if !reflect.DeepEqual(metered, again) {
			t.Errorf("%s: run twice it differs\n%+v\n%+v\n%x", name, metered, again, module)
		}
		if used == nil {
			used = metered.fuel
		}
		if !reflect.DeepEqual(used, metered.fuel) {
			t.Errorf("the engines do not agree on fuel: %v and %v\n%x", used, metered.fuel, module)
		}
		if metered.fuel = nil; !reflect.DeepEqual(original, metered) {
			t.Errorf("%s: original and rewritten module differ\n%+v\n%+v\n%x", name, original, metered, module)
		}
		for _, c := range original.calls {
			if strings.Contains(c, "error") {
				traps++
			}
		}
	}
	return traps
}

// TestRandomModules compares modules that are made at random, the same ones each time.
func TestRandomModules(t *testing.T) {
	runtimes := newEngines(t)
	random := rand.New(rand.NewPCG(1, 2))
	modules, size, traps, calls := 400, 0, 0, 0
	for range modules {
		source := make([]byte, 200+random.IntN(3000))
		for i := range source {
			source[i] = byte(random.Uint32())
		}
		module, functions := generate(source)
		size += len(module)
		calls += 4 * len(functions)
		traps += compare(t, runtimes, module, functions)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d modules of %d bytes on average, %d calls, %d of which trapped", modules, size/modules, calls, traps)
	if traps == 0 || traps > calls*9/10 {
		t.Error("that is no mixture to learn from")
	}
}

func FuzzInstrument(f *testing.F) {
	for i := range 8 {
		f.Add(bytes.Repeat([]byte{byte(37 * i), byte(11 * i), 5, 4, 7, 9}, 40+i))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		if len(source) > 4000 {
			t.Skip("longer than it needs to be")
		}
		module, functions := generate(source)
		compare(t, newEngines(t), module, functions)
	})
}
