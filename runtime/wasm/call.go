package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// callContext is the context that a guest runs in. Its one value is the frame: wazero asks for
// several of its own in each call, which are in none of the caller's contexts.
type callContext struct {
	context.Context
	frame *frame
}

// frameKey is the key of a callContext's one value.
type frameKey struct{}

func (c *callContext) Value(key any) any {
	if key == (frameKey{}) {
		return c.frame
	}
	return nil
}

// call is the host's side of one call of one export of a guest. It serves one
// goroutine.
type call struct {
	of     *guests
	export string // what was called
	event  plugin.Event
	adj    *plugin.Adjustment
	time   time.Time
	clock  *clock      // the instance's
	kv     *plugin.Txn // nil until it is used

	meter     meter
	hostCalls int
	moved     int    // bytes that host functions took from the guest or gave it since the last charge
	work      int    // units of fuel for what else they did since then
	reason    string // what the guest gave to fail
	scratch   []byte
	unread    unread
	output    output
	random    *rand.ChaCha8 // nil until it is used

	profile *running // nil: no profile, or nothing noted yet

	watch plugin.CallWatcher // nil: nobody watches the call
	noted []byte             // of what a host function has written last, if somebody does
}

// newCall returns the state of one call; budget, ev and adj are nil outside hooks. It is the
// guest's own and valid until the guest's next call.
func (g *guest) newCall(ctx context.Context, export string, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) *call {
	c := &g.call
	*c = call{} // and field by field, since a literal would be made elsewhere and copied
	c.of, c.export, c.event, c.adj, c.clock = g.of, export, ev, adj, &g.clock
	c.meter.left, c.meter.stack = g.fuel, g.frames
	c.output.budget = maxOutput
	if ev == nil {
		c.meter.allowance, c.meter.start = g.of.options.start(), time.Now()
		c.event, c.adj, c.time = plugin.NoEvent{}, plugin.NewAdjustment(0, 0), time.Unix(0, 0)
	} else {
		c.time = ev.Time()
		hook, m := ev.Hook(), &c.meter
		m.limits, m.budget, m.tick = &g.of.manifest.Limits, budget, hook == abi.Tick
		switch hook {
		case abi.Tick:
			m.allowance = g.of.hooks.tick
		case abi.Synchronize:
			m.allowance = g.of.hooks.synchronize
		default:
			m.allowance = g.of.hooks.usual
		}
		m.start = budget.Running() // when the guest was called, less what it waited since: without another look at the clock
	}
	return c
}

// What a host function costs: some tens of nanoseconds to get there, copying, an element
// of a list or an entry of a map that was sorted, read or written, and a file that was read.
const (
	hostCallFuel = 100
	bytesPerFuel = 16
	elementFuel  = 16
	fileFuel     = lookFuel // there is no telling how long a file takes
)

func (c *call) tooManyCalls() *trap {
	most, hook := c.meter.hostCalls, c.event.Hook()
	all := hook == abi.Tick || hook == abi.Synchronize // which go through all of a node's containers
	remedy := c.meter.remedy("host_calls", all, int64(most))
	if remedy != "" {
		remedy = ": " + remedy
	}
	return &trap{fmt.Sprintf("called the host more than %d times%s", most, remedy), observe.ClassHostCalls}
}

// charge makes the guest pay for the call of a host function that is done, and ends
// its call if it cannot. Now and then it checks the time, and takes the fuel from the guest's
// own when some has come together.
func (c *call) charge(ctx context.Context) {
	cost := int64(hostCallFuel + c.moved/bytesPerFuel + c.work)
	c.moved, c.work = 0, 0
	m := &c.meter
	m.owed += cost
	if m.unseen += cost; m.unseen >= lookFuel {
		if err := m.check(ctx, time.Now()); err != nil {
			panic(&stop{err})
		}
	}
	if m.owed < min(owedFuel, m.fuel) || m.left == nil {
		return
	}
	more, err := m.refuel(ctx, int64(m.left.Get()))
	m.left.Set(uint64(more))
	if err != nil {
		panic(&stop{err})
	}
}

func (c *call) observer() observe.Observer { return c.of.options.Observer }

// report gives the cost of the call to the hook's chain, or to the observer.
func (c *call) report(ctx context.Context) {
	c.adj.Use(c.meter.used(), int64(c.hostCalls))
	if c.event.Hook() == 0 && c.observer().Wants(observe.KindFunctionCalled) {
		c.observer().Observe(ctx, &observe.FunctionCalled{
			Plugin: c.of.id, Function: c.export, Duration: time.Since(c.meter.start), Fuel: c.meter.used(), HostCalls: int64(c.hostCalls),
		})
	}
}

// fill fills b with numbers that are the same for each call of this plugin for
// the same event.
func (c *call) fill(b []byte) {
	if c.random == nil {
		h := sha256.New()
		h.Write([]byte(c.of.id + "\x00" + c.export + "\x00"))
		h.Write(binary.LittleEndian.AppendUint64([]byte{byte(c.event.Hook())}, uint64(c.time.UnixNano())))
		uid, _ := c.event.Text(abi.Pod, abi.PodUID)
		container, _ := c.event.Text(abi.Container, abi.ContainerName)
		h.Write([]byte(uid + "\x00" + container))
		c.random = rand.NewChaCha8([32]byte(h.Sum(nil)))
	}
	c.random.Read(b)
}
