package daemon_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// What a hostile guest may cost the node: that much on a machine that has nothing else
// to do, and else that much more than a goroutine that computes in its place costs there at that
// moment. Where the machine is another's for a moment both see it, but not always the
// same moment, hence the attempts: what a guest costs it costs each time.
const (
	maxOverrun  = 100 * time.Millisecond // of the budget, by a call
	maxSlowdown = 50 * time.Millisecond  // of the 99th percentile of other calls
	maxPause    = 100 * time.Millisecond // of runtime.GC
	maxGrowth   = 150 << 20              // of resident memory while it acts; what it leaves for the collector grows with its time
	maxLeft     = 24 << 20               // once free memory was given back: 16 MiB of an instance that waits, and 8
	attempts    = 8
	rest        = time.Second // between attempts: a machine that is short of memory is so for a while
)

// cost is what something cost the node.
type cost struct {
	lasted     time.Duration
	late       time.Duration // beyond its budget, at the most
	p99, pause time.Duration
	growth     int64
	left       int64
}

func (c cost) String() string {
	return fmt.Sprintf("%v over its budget, p99 of other calls %v, runtime.GC %v, memory +%.1f MiB, then %+.1f",
		c.late, c.p99, c.pause, float64(c.growth)/(1<<20), float64(c.left)/(1<<20))
}

// over lists what is more than it may be where a goroutine in its place costs that much.
// With the race detector memory is not the program's.
func (c cost) over(control cost) (over []string) {
	note := func(is bool, format string, args ...any) {
		if is {
			over = append(over, fmt.Sprintf(format, args...))
		}
	}
	if wallClock() {
		note(c.late > control.late+maxOverrun, "it ended %v after its budget", c.late)
		note(c.p99 > control.p99+maxSlowdown, "p99 of other calls was %v", c.p99)
		note(c.pause > control.pause+maxPause, "runtime.GC took %v", c.pause)
	}
	if underRace {
		return over
	}
	note(c.growth >= maxGrowth, "resident memory grew by %.1f MiB", float64(c.growth)/(1<<20))
	note(c.left >= maxLeft, "resident memory stayed larger by %.1f MiB", float64(c.left)/(1<<20))
	return over
}

// try measures what it costs to let a guest act, which may take as long as its budget.
// What must be true of each call is checked in each attempt; the figures have to hold
// in one, before each of which prepare runs.
func (k *kit) try(t *testing.T, budget time.Duration, prepare func(), act func() time.Duration) {
	t.Helper()
	var over []string
	for range attempts {
		prepare()
		k.starved = false
		c := k.measure(budget, act)
		if over = k.judge(t, budget, c); len(over) == 0 || t.Failed() {
			t.Log(c)
			return
		}
		t.Logf("once: %s", strings.Join(over, "; "))
		k.good(t)
		time.Sleep(rest)
	}
	t.Errorf("in each of %d attempts; in the last one %s", attempts, strings.Join(over, "; "))
}

// judge says what is wrong with a cost.
func (k *kit) judge(t *testing.T, budget time.Duration, c cost) (over []string) {
	t.Helper()
	if over = c.over(cost{}); len(over) > 0 {
		control := k.measure(budget, func() time.Duration { return k.compute(t, budget, c.lasted) })
		t.Logf("it cost %v; a goroutine in its place: %v", c, control)
		over = c.over(control)
	}
	if k.starved {
		over = append(over, "time was up before its own end")
	}
	return over
}

// compute does for so long what a guest with this budget does, but for being one: it
// makes calls that first clear new memory, in one instruction as it were, and then take all
// of a processor. It returns how long the longest took,
// which is longer than the budget only because somebody else had the processor.
func (k *kit) compute(t *testing.T, budget, lasts time.Duration) (longest time.Duration) {
	t.Helper()
	for i, start := 0, time.Now(); time.Since(start) < lasts; i++ {
		call := time.Now()
		if err := k.unrelated(t.Context(), k.other, i); err != nil {
			t.Error(err)
		}
		k.clearNewMemory()
		x := uint64(1)
		for time.Since(call) < budget && time.Since(start) < lasts {
			for range 1 << 20 { // a millisecond, after which a metered guest looks at the clock too
				x = x*6364136223846793005 + 1442695040888963407
			}
		}
		runtime.KeepAlive(x)
		longest = max(longest, time.Since(call))
	}
	return longest
}

// clearNewMemory writes to as much new memory as a guest has. Neither a goroutine nor a guest
// can be stopped meanwhile. Where the kernel finds no huge pages this has taken 180 ms.
func (k *kit) clearNewMemory() {
	memory, err := syscall.Mmap(-1, 0, wasm.DefaultMemoryPages<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	k.must(err)
	clear(memory)
	k.must(syscall.Munmap(memory))
}

// measure lets something act while other calls go on. act returns the longest time of
// what has this budget.
func (k *kit) measure(budget time.Duration, act func() time.Duration) (c cost) {
	before := k.settle()
	calls, collections := traffic(k.node, k.other), collecting()
	start := time.Now()
	c.late = max(0, act()-budget)
	c.lasted = time.Since(start)
	c.p99, c.pause = calls(), collections()
	c.growth = k.peak() - before
	c.left = k.settle() - before
	return c
}

// traffic makes calls that the hostile plugin does not hook: of those that no plugin
// does, and, if there is a container, as many that 20-good does. What it returns ends
// that and says how long they took.
func traffic(n *node, container string) (p99 func() time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var took []time.Duration
	var calling sync.WaitGroup
	calling.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			start := time.Now()
			if err := n.unrelated(ctx, container, i); err != nil && ctx.Err() == nil {
				n.t.Errorf("another call: %v", err)
			}
			took = append(took, time.Since(start))
			time.Sleep(100 * time.Microsecond)
		}
	})
	return func() time.Duration {
		time.Sleep(20 * time.Millisecond) // some calls at least
		cancel()
		calling.Wait()
		slices.Sort(took)
		return took[len(took)*99/100]
	}
}

func (n *node) unrelated(ctx context.Context, container string, i int) (err error) {
	if i%2 == 0 || container == "" {
		_, err = n.kubelet.Version(ctx, &runtimeapi.VersionRequest{})
		return err
	}
	_, err = n.kubelet.UpdateContainerResources(ctx, &runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: container, Linux: &runtimeapi.LinuxContainerResources{CpuShares: 512},
	})
	return err
}

// collecting collects garbage. What it returns ends that and says how long the
// longest collection took.
func collecting() (longest func() time.Duration) {
	done, result := make(chan struct{}), make(chan time.Duration)
	go func() {
		var worst time.Duration
		for {
			start := time.Now()
			runtime.GC()
			worst = max(worst, time.Since(start))
			select {
			case <-done:
				result <- worst
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() time.Duration {
		close(done)
		return <-result
	}
}

// settle gives free memory back, and returns how much is resident. The peak starts
// anew.
func (k *kit) settle() int64 {
	debug.FreeOSMemory()
	k.must(os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
	return k.resident("VmRSS:")
}

// peak returns how much memory was resident at a time since settle.
func (k *kit) peak() int64 { return k.resident("VmHWM:") }

func (k *kit) resident(key string) int64 {
	k.t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	k.must(err)
	_, rest, _ := strings.Cut(string(b), key)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	k.must(err)
	return kib << 10
}
