package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// theInstance returns the only instance of a plugin when it is idle again.
func theInstance(t *testing.T, p plugin.Plugin) *guest {
	t.Helper()
	g, err := p.(*guests).pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.reset()
	p.(*guests).pool.Put(g)
	return g
}

// TestGuestForgets has a guest leave marks in everything that it could remember
// by, and end in every way. No later call finds one.
func TestGuestForgets(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		p := load(t, e, "remember", PluginOptions{Instances: 1})
		for _, do := range []string{"", "trap", "", "exit", "", "much", ""} {
			for range 2 {
				if changes, err := callPlugin(t.Context(), p, asking(do)); do == "" || do == "much" {
					if err != nil || len(changes) != 1 || changes[0].Text != "000000" {
						t.Errorf("%q: got %v, %v", do, changes, err)
					}
				}
			}
		}
		g := theInstance(t, p)
		callPlugin(t.Context(), p, asking(""))
		if same := theInstance(t, p); same != g {
			t.Error("an instance that can be reset was replaced")
		}
		callPlugin(t.Context(), p, asking("trap"))
		if same := theInstance(t, p); same != g {
			t.Error("an instance that trapped was replaced and not reset")
		}
		callPlugin(t.Context(), p, asking("much"))
		if same := theInstance(t, p); same == g || same.instance.Memory().Size() != 2<<16 {
			t.Error("an instance that grew by 10 MiB was not replaced")
		}
	})
}

// TestMarksAreSeen shows that the marks of the test above can be found: an instance
// that is not reset has them all.
func TestMarksAreSeen(t *testing.T) {
	p := load(t, newEngine(t, Options{}), "remember", PluginOptions{Instances: 1}).(*guests)
	g := theInstance(t, p)
	for _, want := range []string{"000000", "111111"} {
		adj := plugin.NewAdjustment(abi.PreCreateContainer, 0)
		if _, err := g.enter(t.Context(), g.newCall(t.Context(), "", nil, asking(""), adj), g.hook, uint64(abi.PreCreateContainer)); err != nil {
			t.Fatal(err)
		}
		if got := adj.Changes()[0].Text; got != want {
			t.Errorf("it found %s, want %s", got, want)
		}
	}
}

// TestImagesAreShared opens many instances at a time. Real guests all begin alike.
func TestImagesAreShared(t *testing.T) {
	e := newEngine(t, Options{})
	for name, module := range realGuests(t) {
		p, err := e.Load(t.Context(), name, module, PluginOptions{Instances: 4})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					if _, err := callPlugin(t.Context(), p, newEvent()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n := len(p.(*guests).images); n != 1 {
			t.Errorf("%s: instances have %d images", name, n)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if used := e.memory.used.Load(); used != 0 {
		t.Errorf("closed plugins hold %d bytes of the memory budget", used)
	}
}

// realGuests are what compilers made.
func realGuests(t testing.TB) map[string][]byte {
	tinygo, err := os.ReadFile(filepath.Join("..", "..", "plugins-wasm", "qos", "qos.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tinygo": tinygo, "go": buildGuest(t), "wat": wat(t, "quota")}
}

// TestMemoryBudget lets a guest take all memory that there is for all of them.
func TestMemoryBudget(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		e.memory.limit = 1 << 20
		p := load(t, e, "alloc", PluginOptions{Instances: 1})
		first := e.memory.used.Load()
		for range 2 {
			_, err := callPlugin(t.Context(), p, newEvent())
			wantError(t, err, "trapped: unreachable in out_of_memory, called by wp_hook; it asked for memory: 0.0625 MiB more do not fit into the memory budget of all guests: ")
		}
		if theInstance(t, p); e.memory.used.Load() > first {
			t.Errorf("a guest that got no more memory keeps %d bytes", e.memory.used.Load())
		}
		e.memory.limit = 100 << 10
		_, err := e.Load(t.Context(), "p", wat(t, "noop"), PluginOptions{})
		wantError(t, err, "instantiating: 0.0625 MiB more do not fit into the memory budget of all guests: ")
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		load(t, e, "quota", PluginOptions{})
	})
}

// TestFailuresReturnMemory loads what fails at each step of an instance's making.
func TestFailuresReturnMemory(t *testing.T) {
	engines(t, func(t *testing.T, e *Engine) {
		for _, guest := range []string{"start-trap", "configure-refuse", "abi-major", "manifest-outside"} {
			if _, err := e.Load(t.Context(), "p", wat(t, guest), PluginOptions{}); err == nil {
				t.Errorf("%s was loaded", guest)
			}
			if used := e.memory.used.Load(); used != 0 {
				t.Errorf("%s holds %d bytes of the memory budget", guest, used)
			}
		}
	})
}

// TestRunningIsBounded shows that a guest waits while as many run as may, whichever
// plugin they are of, as long as its caller does: that it waited is not its own time.
func TestRunningIsBounded(t *testing.T) {
	e := newEngine(t, Options{Running: 1})
	looping, other := load(t, e, "fickle", PluginOptions{}), load(t, e, "quota", PluginOptions{Timeout: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ev, ended := signalling{asking("loop"), make(chan struct{})}, make(chan struct{})
	go func() { callPlugin(ctx, looping, ev); close(ended) }()
	<-ev.reading
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	_, err := callPlugin(short, other, newEvent())
	wantError(t, err, "waiting for one of the 1 guests that may run at a time: context deadline exceeded")
	if !errors.Is(err, plugin.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that it was not run before the caller's deadline", err)
	}
	_, err = other.(*guests).open(short)
	wantError(t, err, "waiting for one of the 1 guests that may run at a time") // nor is it made ready
	time.AfterFunc(2*time.Second, cancel)                                       // after twice its time limit
	wantQuota(t, other)
	<-ended
}

// TestRestore changes memory at random and restores it.
func TestRestore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		image, want := make([][]byte, random.IntN(4)), []byte(nil)
		for n := range image {
			part := make([]byte, block)
			if random.IntN(2) > 0 {
				part[random.IntN(block)], image[n] = 1, part
			}
			want = append(want, part...)
		}
		want = append(want, make([]byte, block*random.IntN(3))...)
		memory := bytes.Clone(want)
		for range random.IntN(20) {
			if len(memory) > 0 {
				memory[random.IntN(len(memory))] ^= byte(random.Uint32())
			}
		}
		if restore(memory, image); !bytes.Equal(memory, want) {
			t.Fatalf("an image of %d blocks was not restored to %d bytes", len(image), len(memory))
		}
	}
}

// BenchmarkRestore restores 4 MiB of memory, half of which is zeros in the image,
// after a part of its pages has changed.
func BenchmarkRestore(b *testing.B) {
	const size = 4 << 20
	flat := bytes.Repeat([]byte{1, 2, 3, 4}, size/2/4)
	image := slices.Collect(slices.Chunk(flat, block))
	for _, changed := range []int{0, 1, 10, 100} {
		memory := make([]byte, size)
		b.Run(fmt.Sprintf("%d%%", changed), func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				for page := 0; page < size; page += 4096 * 100 / max(changed, 1) {
					if changed > 0 {
						memory[page] = 9
					}
				}
				restore(memory, image)
			}
		})
	}
	b.Run("copy", func(b *testing.B) {
		memory := make([]byte, size)
		b.SetBytes(size)
		for b.Loop() {
			clear(memory[copy(memory, flat):])
		}
	})
}

// TestPluginsShare shows that one plugin cannot take every turn.
func TestPluginsShare(t *testing.T) {
	e := newEngine(t, Options{Running: 2})
	looping, other := load(t, e, "fickle", PluginOptions{Timeout: 20 * time.Millisecond}), load(t, e, "quota", PluginOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				callPlugin(ctx, looping, asking("loop"))
			}
		})
	}
	for range 100 {
		wantQuota(t, other)
		if limit := looping.(*guests).perPlugin; limit.TryAcquire(2) {
			t.Error("two guests of one plugin may run")
			limit.Release(2)
		}
	}
	cancel()
	wg.Wait()
}

// BenchmarkLatency is what a caller waits for: a call that meets an instance which
// was reset in the meantime.
func BenchmarkLatency(b *testing.B) {
	e := newEngine(b, Options{})
	for name, module := range realGuests(b) {
		b.Run(name, func(b *testing.B) {
			p, err := e.Load(b.Context(), name, module, PluginOptions{Instances: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close(context.Background())
			ev, spent := newEvent(), time.Duration(0)
			for b.Loop() {
				start := time.Now()
				if _, err := callPlugin(b.Context(), p, ev); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(start)
				p.(*guests).resets.Wait()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/call")
		})
	}
}

// BenchmarkReset resets an instance of a real guest after a call, and reports the
// memory that it has.
func BenchmarkReset(b *testing.B) {
	e := newEngine(b, Options{})
	for name, module := range realGuests(b) {
		b.Run(name, func(b *testing.B) {
			plug, err := e.Load(b.Context(), name, module, PluginOptions{Instances: 1})
			if err != nil {
				b.Fatal(err)
			}
			defer plug.Close(context.Background())
			p := plug.(*guests)
			g, err := p.pool.Get(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			g.reset()
			defer p.pool.Put(g)
			spent, least := time.Duration(0), time.Duration(math.MaxInt64)
			for b.Loop() {
				c := g.newCall(b.Context(), abi.ExportHook, nil, newEvent(), plugin.NewAdjustment(abi.PreCreateContainer, 2))
				if _, err := g.enter(b.Context(), c, g.hook, uint64(abi.PreCreateContainer)); err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				g.restoreImage()
				took := time.Since(start)
				spent, least = spent+took, min(least, took)
			}
			b.ReportMetric(float64(least.Nanoseconds()), "ns-fastest")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/reset")
			b.ReportMetric(mib(int64(g.instance.Memory().Size())), "MiB")
			b.ReportMetric(mib(g.image.bytes()), "MiB-image")
		})
	}
}
