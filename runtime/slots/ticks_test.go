package slots

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// clock counts its ticks.
type clock struct{ ticks atomic.Int32 }

func (c *clock) Manifest() abi.Manifest {
	return abi.Manifest{Name: "clock", TickMS: 1000, Hooks: abi.ManifestHooks(abi.HookSetOf(abi.Tick))}
}

func (c *clock) Call(context.Context, *plugin.Budget, plugin.Event, *plugin.Adjustment) error {
	c.ticks.Add(1)
	return nil
}

func (c *clock) Close(context.Context) error { return nil }

// A daemon that is told to stop lets calls end, for minutes it may be. No tick begins
// meanwhile.
func TestNoTickWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, stop := context.WithCancel(t.Context())
		s := unconnected(t)
		s.ticks.generations, s.ticks.stopping = &s.generations, told.Done()
		c := new(clock)
		of := load(c)
		s.generations.swap(s.generations.generation([]loader.Member{{Loaded: of, Member: plugin.Member{ID: "10-clock", Plugin: c, Hooks: abi.HookSetOf(abi.Tick)}}}))
		end := s.ticks.begin(t.Context(), of, 0)
		time.Sleep(2500 * time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		if n := c.ticks.Load(); n != 2 {
			t.Errorf("%d ticks, of which 2 before the daemon was told to stop", n)
		}
		end()
		s.generations.swap(nil)
		s.ticks.running.Wait()
	})
}

// The operator's period takes the place of the manifest's.
func TestTickPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unconnected(t)
		s.ticks.generations, s.ticks.stopping = &s.generations, t.Context().Done()
		c := new(clock)
		of := load(c)
		s.generations.swap(s.generations.generation([]loader.Member{{Loaded: of, Member: plugin.Member{ID: "10-clock", Plugin: c, Hooks: abi.HookSetOf(abi.Tick)}}}))
		end := s.ticks.begin(t.Context(), of, 3*time.Second)
		time.Sleep(7 * time.Second)
		end()
		if n := c.ticks.Load(); n != 2 {
			t.Errorf("%d ticks in 7 s with a period of 3 s", n)
		}
		s.generations.swap(nil)
		s.ticks.running.Wait()
	})
}
