package fuel_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
)

const magic = "\x00asm\x01\x00\x00\x00"

// module makes a module of sections, in the order of their numbers but that of the
// data count.
func module(sections ...[]byte) []byte {
	return append([]byte(magic), bytes.Join(sections, nil)...)
}

// one makes a module of one function of type (i32) -> (), which it exports as f.
// Its memory has 4 pages.
func one(body ...byte) []byte {
	return module(section(1, []byte{0x60, 1, i32, 0}), section(3, []byte{0}), section(5, []byte{0, 4}),
		section(7, []byte{1, 'f', 0, 0}), section(10, vector(append([]byte{0}, body...))))
}

// instrument scans and rewrites a module.
func instrument(module []byte, o fuel.Options) ([]byte, error) {
	m, err := preflight.Scan(module)
	if err != nil {
		return nil, err
	}
	return fuel.Instrument(m, o)
}

// TestRefused shows that a guest cannot address what Instrument adds, nor use what
// it does not know: the scan refuses the module.
func TestRefused(t *testing.T) {
	types, functions := section(1, []byte{0x60, 0, 0}), section(3, []byte{0})
	code := section(10, []byte{2, 0, 0x0b})
	global := section(6, []byte{i32, 1, 0x41, 0, 0x0b})
	tests := map[string]struct {
		module []byte
		want   string
	}{
		"sets the fuel":         {one(0x42, 0, 0x24, 0, 0x0b), "code section at offset 0x26: function 0 names global 0 of 0"},
		"reads the stack":       {one(0x23, 1, 0x1a, 0x0b), "names global 1 of 0"},
		"sets our local":        {one(0x42, 0, 0x21, 1, 0x0b), "names local 1 of 1"},
		"calls refuel":          {one(0x10, 1, 0x0b), "function 0 names function 1 of 1"},
		"calls by our type":     {one(0x41, 0, 0x11, 1, 0, 0x0b), "names type 1 of 1"},
		"branches too far":      {one(0x0c, 1, 0x0b), "names label 1 of 1"},
		"has too many ends":     {one(0x0b, 0x0b), "goes on for 1 bytes after its end"},
		"has an else too many":  {one(0x05, 0x0b), "an else without an if"},
		"exports the fuel":      {module(types, functions, global, section(7, []byte{1, 'g', 3, 1}), code), "export section at offset 0x20: names global 1 of 1"},
		"exports refuel":        {module(types, functions, section(7, []byte{1, 'g', 0, 1}), code), "names function 1 of 1"},
		"starts with refuel":    {module(types, functions, append([]byte{8, 1}, 1), code), "start section at offset 0x14: names function 1 of 1"},
		"exports our name":      {module(types, functions, global, section(7, append(vector([]byte(fuel.Fuel)), 3, 0)), code), `uses the name "__wp_fuel": names that begin with __wp_ belong to the host`},
		"imports our module":    {module(types, section(2, append(append(vector([]byte(fuel.Module)), vector([]byte(fuel.Refuel))...), 0, 0))), `uses the name "__wp_fuel"`},
		"imports our name":      {module(types, section(2, append(append([]byte{1, 'a'}, vector([]byte("__wp_x"))...), 0, 0))), `uses the name "__wp_x"`},
		"is of our type":        {module(types, section(3, []byte{1}), code), "function section at offset 0x11: names type 1 of 1"},
		"puts refuel in table":  {module(types, functions, section(4, []byte{0x70, 0, 1}), section(9, []byte{0, 0x41, 0, 0x0b, 1, 1}), code), "element section at offset 0x20: names function 1 of 1"},
		"puts data by the fuel": {module(types, functions, section(5, []byte{0, 1}), code, section(11, []byte{0, 0x23, 0, 0x0b, 0})), "names global 0 of 0"},
		"starts from itself":    {module(section(6, []byte{i32, 1, 0x23, 0, 0x0b})), "names global 0 of 0"},
		"has sections twice":    {module(types, types), "has a second type section"},
		"has sections late":     {module(section(5, []byte{0, 1}), types), "has its type section after the memory section"},
		"has more code":         {module(types, functions, section(10, []byte{2, 0, 0x0b}, []byte{2, 0, 0x0b})), "holds the code of 2 functions where 1 are declared"},
		"has too many locals":   {module(types, functions, section(10, []byte{8, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, i32, 0x0b})), "has more than 2000 locals"},
		"copies data":           {one(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0, 0x0b), "uses memory.init"},
		"grows a table":         {one(0xfc, 15, 0, 0x0b), "uses table.grow"},
		"has a vector":          {one(0xfd, 12, 0x0b), "(SIMD)"},
		"calls at its end":      {one(0x12, 0, 0x0b), "uses return_call"},
		"is nothing but loops":  {loops(2_000, 100), "would make a module of more than"},
		"is no module":          {[]byte("#!/bin/sh"), "not a WebAssembly module"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := instrument(tt.module, fuel.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// loops makes a module of functions that hold empty loops.
func loops(functions, each int) []byte {
	body := vector(append(append([]byte{0}, bytes.Repeat([]byte{0x03, 0x40, 0x0b}, each)...), 0x0b))
	types, bodies := make([][]byte, functions), make([][]byte, functions)
	for i := range functions {
		types[i], bodies[i] = []byte{0}, body
	}
	return module(section(1, []byte{0x60, 0, 0}), section(3, types...), section(10, bodies...))
}

// deeper calls itself twice with one less, as long as its argument is not 0.
var deeper = []byte{0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x0b}

// fill fills 4 pages again and again.
var fill = []byte{0x03, 0x40, 0x41, 0, 0x41, 0, 0x41, 0x80, 0x80, 0x10, 0xfc, 11, 0, 0x0c, 0, 0x0b, 0x0b}

// TestEndless runs what would never end, or not for years, with a million units of
// fuel: each ends with the same account on both engines, at most one basic block late.
func TestEndless(t *testing.T) {
	const limit, late = 1_000_000, 50_000
	tests := map[string][]byte{
		"loop":        one(0x03, 0x40, 0x0c, 0, 0x0b, 0x0b),
		"br_if":       one(0x03, 0x40, 0x41, 1, 0x0d, 0, 0x0b, 0x0b),
		"br_table":    one(0x03, 0x40, 0x41, 0, 0x0e, 1, 0, 0, 0x0b, 0x0b),
		"nested":      one(0x03, 0x40, 0x02, 0x40, 0x03, 0x40, 0x41, 3, 0x0e, 2, 0, 1, 2, 0x0b, 0x0b, 0x0b, 0x0b),
		"recursion":   one(deeper...),
		"memory.fill": one(fill...),
		"memory.copy": one(0x03, 0x40, 0x41, 0, 0x41, 1, 0x41, 0xff, 0xff, 0x0f, 0xfc, 10, 0, 0, 0x0c, 0, 0x0b, 0x0b),
		"memory.grow": one(0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b, 0x0b),
		"start": module(section(1, []byte{0x60, 0, 0}), section(3, []byte{0}), []byte{8, 1, 0},
			section(10, vector([]byte{0, 0x03, 0x40, 0x0c, 0, 0x0b, 0x0b}))),
	}
	for name, module := range tests {
		t.Run(name, func(t *testing.T) {
			used := map[int64]bool{}
			for engine, config := range engines {
				var spent *fuel.Error
				err := call(t, newRuntime(t, config().WithMemoryLimitPages(64)), module, limit)
				if !errors.As(err, &spent) {
					t.Fatalf("%s: got %v, want to be out of fuel", engine, err)
				}
				if spent.Limit != limit || spent.Used <= limit || spent.Used > limit+late {
					t.Errorf("%s: %v", engine, spent)
				}
				used[spent.Used] = true
			}
			if len(used) != 1 {
				t.Errorf("the engines do not agree: %v", used)
			}
		})
	}
}

// call instantiates a module and calls its f, if it has one, with this much fuel in all.
func call(t *testing.T, r wazero.Runtime, original []byte, limit int64) error {
	t.Helper()
	rewritten, err := instrument(original, fuel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meter := fuel.NewMeter(limit, fuel.MaxSlice)
	ctx := context.WithValue(t.Context(), meterKey{}, &meter)
	m, err := r.InstantiateWithConfig(ctx, rewritten, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return err
	}
	defer m.Close(ctx)
	if start := m.ExportedFunction(fuel.Start); start != nil {
		_, err = start.Call(ctx)
		return err
	}
	_, err = m.ExportedFunction("f").Call(ctx, 1000)
	return err
}

// TestStack lets functions recurse without end, small ones, ones of many locals and ones
// that keep many operands: they stop before the engine's own stack grows large.
func TestStack(t *testing.T) {
	operands := append(bytes.Repeat([]byte{0x20, 0}, 200), 0x20, 0, 0x10, 0)
	operands = append(append(operands, bytes.Repeat([]byte{0x1a}, 200)...), 0x0b)
	tests := map[string][]byte{
		"small":    one(0x20, 0, 0x10, 0, 0x0b),
		"operands": one(operands...),
		"locals": module(section(1, []byte{0x60, 1, i32, 0}), section(3, []byte{0}), section(7, []byte{1, 'f', 0, 0}),
			section(10, vector([]byte{1, 0xe8, 7, i64, 0x20, 0, 0x10, 0, 0x0b}))),
	}
	for name, module := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRuntime(t, wazero.NewRuntimeConfigCompiler())
			rewritten, err := instrument(module, fuel.Options{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := r.InstantiateWithConfig(t.Context(), rewritten, wazero.NewModuleConfig())
			if err != nil {
				t.Fatal(err)
			}
			stack := m.ExportedGlobal(fuel.Stack).(api.MutableGlobal)
			f := m.ExportedFunction("f")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = f.Call(t.Context(), 1)
			runtime.ReadMemStats(&after)
			if err == nil || int32(stack.Get()) >= 0 {
				t.Fatalf("got %v with %d bytes of stack left", err, int32(stack.Get()))
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("allocated %d KiB", allocated>>10)
			if allocated > 16<<20 {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
		})
	}
}

// TestOptions gives a function stack for so many frames and no more, again and again.
func TestOptions(t *testing.T) {
	const depth = 10
	chain := one(0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x0b, 0x0b)
	for _, tt := range []struct {
		stack int32
		ok    bool
	}{{(depth + 1) * 8 * (8 + 1 + 2), true}, {(depth+1)*8*(8+1+2) - 1, false}} {
		rewritten, err := instrument(chain, fuel.Options{Stack: tt.stack})
		if err != nil {
			t.Fatal(err)
		}
		for engine, config := range engines {
			m, err := newRuntime(t, config()).InstantiateWithConfig(t.Context(), rewritten, wazero.NewModuleConfig())
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := m.ExportedFunction("f").Call(t.Context(), depth); (err == nil) != tt.ok {
					t.Errorf("%s: with %d bytes: %v", engine, tt.stack, err)
				}
				if left := int32(m.ExportedGlobal(fuel.Stack).Get()); tt.ok && left != tt.stack {
					t.Errorf("%s: %d bytes are left of %d", engine, left, tt.stack)
				}
			}
		}
	}
}

func TestMeter(t *testing.T) {
	const slice = fuel.FirstSlice
	m := fuel.NewMeter(2*slice+100, slice)
	left, total := int64(0), int64(0)
	for i, want := range []int64{slice, slice, 100 - 2*7, 0} {
		var err error
		if left, err = m.Refuel(left); err != nil || left != want {
			t.Fatalf("slice %d is %d, %v; want %d", i, left, err, want)
		}
		if m.Used(left) != total {
			t.Errorf("used %d, want %d", m.Used(left), total)
		}
		if total += left; i < 2 {
			total, left = total+7, -7 // the last block cost more than was left
		} else {
			left = 0
		}
	}
	_, err := m.Refuel(-1)
	var spent *fuel.Error
	if !errors.As(err, &spent) || *spent != (fuel.Error{Limit: 2*slice + 100, Used: 2*slice + 101}) {
		t.Errorf("got %v, want the account", err)
	}
}

// TestPace shows that slices are to take a millisecond each: those of a guest that waits for
// memory become short at once, and those of a fast one grow, up to a bound.
func TestPace(t *testing.T) {
	m := fuel.NewMeter(math.MaxInt64, fuel.MaxSlice)
	left := int64(0)
	for i, step := range []struct {
		took time.Duration // by the slice before
		want int64
	}{
		{0, fuel.FirstSlice}, {4 * time.Millisecond, 5_000}, {time.Millisecond, 5_000}, {time.Microsecond, 20_000},
		{time.Microsecond, 80_000}, {0, fuel.MaxSlice}, {20 * time.Millisecond, 5_000}, {time.Hour, 1_000},
	} {
		if i > 0 {
			m.Pace(step.took)
		}
		var err error
		if left, err = m.Refuel(0); err != nil || left != step.want {
			t.Errorf("slice %d is %d, %v, after one of %v; want %d", i, left, err, step.took, step.want)
		}
	}
	short := fuel.NewMeter(math.MaxInt64, 2_000) // an interpreted guest's
	if short.Pace(time.Nanosecond); short.Used(0) != 0 {
		t.Error("to pace a guest is no use of fuel")
	}
	if left, _ = short.Refuel(0); left != 2_000 {
		t.Errorf("a slice is %d, and may be 2000 at most", left)
	}
}

// TestNames shows that a trap still names the function that it happened in.
func TestNames(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "wat", "trap.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if err := callExport(t, b); !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v, want boom in it", err)
	}
}

func callExport(t *testing.T, original []byte) error {
	t.Helper()
	rewritten, err := instrument(original, fuel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newRuntime(t, wazero.NewRuntimeConfigCompiler()).InstantiateWithConfig(t.Context(), rewritten, wazero.NewModuleConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.ExportedFunction("wp_hook").Call(t.Context(), 3)
	return err
}
