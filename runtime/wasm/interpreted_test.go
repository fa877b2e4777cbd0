package wasm

import (
	"context"
	"runtime"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// sums is a module of so many functions of half a MiB, which the interpreter makes the most of.
func sums(functions int) []byte {
	const n = 170_000
	return bomb{functions: functions, body: code(locals(0), times(n, opConst, 0), times(n-1, opAdd), opDrop, opEnd)}.module()
}

// TestN56InterpretedCode loads modules whose code would take the proxy a GiB of heap.
func TestN56InterpretedCode(t *testing.T) {
	e := newEngine(t, Options{})
	loops := bomb{functions: 28, body: code(locals(0), times(2400, opLoop, none, times(60, 1), opEnd), opEnd)} // N57
	for name, module := range map[string][]byte{"N56": sums(14), "N57": loops.module()} {
		var err error
		grew := heapGrowth(func() any {
			p, failed := e.Load(t.Context(), "p", module, PluginOptions{Interpret: true})
			err = failed
			return p
		})
		if err == nil || grew > 1<<20 {
			t.Errorf("%s: got %v, and %d KiB are kept", name, err, grew>>10)
		}
	}
	_, err := e.Load(t.Context(), "p", sums(14), PluginOptions{Interpret: true})
	wantError(t, err, "MiB with its metering, too much to be interpreted: the limit is 2.75 MiB; make it smaller, or let it be compiled")
}

// TestS07InterpretedTogether loads the largest module that is interpreted as often as there is
// room: what its code takes is no more than what the budget of all guests is charged, and
// comes back when a plugin is closed.
func TestS07InterpretedTogether(t *testing.T) {
	e := newEngine(t, Options{GuestMemory: 192 << 20})
	module := sums(5)
	charged := e.memory.used.Load()
	var p interface{ Close(context.Context) error }
	grew := heapGrowth(func() any {
		loaded, err := e.Load(t.Context(), "p", module, PluginOptions{Interpret: true})
		if err != nil {
			t.Fatal(err)
		}
		p = loaded
		return loaded
	})
	charged = e.memory.used.Load() - charged
	if grew > charged || charged > 128<<20 {
		t.Errorf("it takes %d KiB of the heap and is charged %d", grew>>10, charged>>10)
	}
	second := sums(4) // another module: the code of one is there once
	third := sums(3)
	q, err := e.Load(t.Context(), "q", second, PluginOptions{Interpret: true})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Load(t.Context(), "r", third, PluginOptions{Interpret: true})
	wantError(t, err, "interpreting its code: ")
	wantError(t, err, "do not fit into the memory budget of all guests")
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := e.Load(t.Context(), "r", third, PluginOptions{Interpret: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []interface{ Close(context.Context) error }{q, r} {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if used := e.memory.used.Load(); used != 0 {
		t.Errorf("closed plugins hold %d bytes", used)
	}
}

// heapGrowth is how many bytes are on the heap because of what f returns.
func heapGrowth(f func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestN80InspectCompilesElsewhere inspects a module that only running it tells about, and that
// takes seconds to compile: this process does not.
func TestN80InspectCompilesElsewhere(t *testing.T) {
	b := bomb{functions: 12, body: []byte(slowBody(650, 500)), silent: true}
	if underRace {
		b.functions = 1 // the child is this program, and as slow
	}
	before := processorTime(t)
	in, err := Inspect(t.Context(), b.module(), PluginOptions{})
	took := processorTime(t) - before
	if err != nil || in.ABI != abi.Version || len(in.Problems) > 0 {
		t.Errorf("got %+v, %v", in, err)
	}
	if took > 500_000_000 && !underRace {
		t.Errorf("this process took %v of processor time", took)
	}
}
