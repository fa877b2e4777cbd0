package wasm

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestHammer calls one plugin of 4 instances from 8 goroutines that make it trap,
// exit, loop and fail in between, or go away. No good call may notice.
func TestHammer(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "fickle", PluginOptions{Timeout: time.Minute, Instances: 4})
		var good, bad atomic.Int64
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := range 100 {
					if hammer(t, p.(*guests), w+i) {
						good.Add(1)
					} else {
						bad.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if good.Load() == 0 || bad.Load() == 0 {
			t.Errorf("%d good and %d bad calls", good.Load(), bad.Load())
		}
	})
}

// hammer makes one call and reports whether it was a good one.
func hammer(t *testing.T, p *guests, n int) bool {
	do := []string{"", "", "trap", "", "exit", "", "fail", "loop"}[n%8]
	ctx := t.Context()
	if do == "loop" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
	}
	changes, err := callPlugin(ctx, p, asking(do))
	switch {
	case do == "" && (err != nil || len(changes) != 1 || changes[0].Key != "example.com/count"):
		t.Errorf("a good call got %v, %v", changes, err)
	case do == "loop" && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("a call that looped got %v", err)
	case do != "" && err == nil:
		t.Errorf("a call that was to %s got no error", do)
	}
	return do == ""
}

// TestLoadAndClose loads and closes a plugin 1,000 times, with calls that trap and
// calls that time out in between, and looks at what stays: memory of the process
// and goroutines.
func TestLoadAndClose(t *testing.T) {
	e := newEngine(t, Options{})
	module := wat(t, "fickle")
	cycle := func(n int) {
		p, err := e.Load(t.Context(), "p"+strconv.Itoa(n), module, PluginOptions{Set: abi.Limits{Fuel: math.MaxInt64}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for _, do := range []string{"", "trap", ""} {
			callPlugin(t.Context(), p, asking(do))
		}
		ctx, cancel := context.WithCancel(t.Context())
		ev := signalling{asking("loop"), make(chan struct{})}
		go func() { <-ev.reading; cancel() }()
		callPlugin(ctx, p, ev)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Load(t.Context(), "p", wat(t, "start-trap"), PluginOptions{}); err == nil {
			t.Fatal("start-trap was loaded")
		}
	}
	for n := range 200 {
		cycle(n)
	}
	before, goroutines := resident(t), runtime.NumGoroutine()
	for n := range 800 {
		cycle(n)
	}
	after := resident(t)
	t.Logf("resident memory: %d KiB after 200 cycles, %d KiB after 1,000", before>>10, after>>10)
	if after > before+before/10+8<<20 { // the race detector's own memory is a multiple
		t.Errorf("800 cycles left %d KiB", (after-before)>>10)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, n)
	}
}

// resident returns the process's memory, less what Go can give back, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestStackIsDropped shows that the stack of a guest that overflowed it, many
// megabytes, does not outlive the call.
func TestStackIsDropped(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "recursion", PluginOptions{Timeout: time.Minute, Instances: 4})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 4 {
		_, err := callPlugin(t.Context(), p, newEvent())
		wantError(t, err, "stack overflow")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapInuse > before.HeapInuse+16<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before.HeapInuse>>20, after.HeapInuse>>20)
	}
}
