package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
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
		log := observe.Discard()
		told, stop := context.WithCancel(t.Context())
		d := &daemon{
			config: new(config.Config), observer: log, store: pods.NewStore(), queue: workqueue.New(), syncTrigger: newTrigger(),
			backend: new(backend), bypass: new(bypassing),
		}
		d.ticks.current, d.ticks.stopping = &d.current, told.Done()
		d.backend.node.Store(new(crifield.Node))
		c := new(clock)
		of := load(t, c)
		d.current.swap(d.generation([]member{{loaded: of, Member: plugin.Member{ID: "10-clock", Plugin: c, Hooks: abi.HookSetOf(abi.Tick)}}}))
		end := d.ticks.begin(t.Context(), of)
		time.Sleep(2500 * time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		if n := c.ticks.Load(); n != 2 {
			t.Errorf("%d ticks, of which 2 before the daemon was told to stop", n)
		}
		end()
		d.current.swap(nil)
		d.ticks.running.Wait()
	})
}
