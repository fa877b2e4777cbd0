package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// maxHostCalls is how often a guest may call the host in one call of its own.
const maxHostCalls = 1000

// callKey finds the *call in the context of a host function.
type callKey struct{}

// call is the host's side of one call of one export of a guest. It serves one
// goroutine.
type call struct {
	id     string // the plugin's
	export string // what was called
	config []byte
	event  plugin.Event
	adj    *plugin.Adjustment
	time   time.Time
	clock  *clock // the instance's

	meter     meter
	hostCalls int
	moved     int    // bytes that host functions took from the guest or gave it since the last charge
	reason    string // what the guest gave to fail
	scratch   []byte
	output    output
	random    *rand.ChaCha8 // nil until it is asked
}

// newCall returns the state of one call; ev and adj are nil outside hooks.
func (g *guest) newCall(ctx context.Context, export string, ev plugin.Event, adj *plugin.Adjustment) *call {
	c := &call{id: g.id, export: export, config: g.config, event: ev, adj: adj, clock: &g.clock}
	c.meter = meter{ctx: ctx, allowance: g.allowance, start: time.Now(), left: g.fuel, stack: g.frames}
	attr := slog.String("export", export)
	if ev == nil {
		c.meter.allowance = allowance{fuel: startFuel} // time is limited for all that comes before events
		c.event, c.adj, c.time = noEvent{}, plugin.NewAdjustment(0, nil), time.Unix(0, 0)
	} else {
		c.time = ev.Time()
		attr = about(ev)
	}
	c.output = output{ctx: ctx, log: g.log, about: attr, budget: maxOutput}
	return c
}

// What a host function costs: some tens of nanoseconds to get there, and copying.
const (
	hostCallFuel = 100
	bytesPerFuel = 16
)

// about names an event in the log: its hook, and its pod and container if it can
// tell them.
func about(ev plugin.Event) slog.Attr {
	hook := slog.String("hook", ev.Hook().String())
	if _, ok := ev.(slog.LogValuer); !ok {
		return hook
	}
	return slog.Group("", hook, slog.Any("", ev))
}

// count notes one call of a host function, and traps when there were too many.
func (c *call) count() {
	if c.hostCalls++; c.hostCalls > maxHostCalls {
		panic(trapf("called the host more than %d times", maxHostCalls))
	}
}

// charge makes the guest pay for the call of a host function that is done, and ends
// its call if it cannot.
func (c *call) charge() {
	cost := hostCallFuel + c.moved/bytesPerFuel
	c.moved = 0
	if err := c.meter.charge(int64(cost)); err != nil {
		panic(&stop{err})
	}
}

// report logs what the call cost.
func (c *call) report(ctx context.Context) {
	if c.output.log.Enabled(ctx, slog.LevelDebug) {
		c.output.log.LogAttrs(ctx, slog.LevelDebug, "plugin called", c.output.about, slog.Int64("fuel", c.meter.used()),
			slog.Int("host_calls", c.hostCalls), slog.Duration("took", time.Since(c.meter.start)))
	}
}

// fill fills b with numbers that are the same whenever this plugin is told of
// the same event.
func (c *call) fill(b []byte) {
	if c.random == nil {
		h := sha256.New()
		h.Write([]byte(c.id + "\x00" + c.export + "\x00"))
		h.Write(binary.LittleEndian.AppendUint64([]byte{byte(c.event.Hook())}, uint64(c.time.UnixNano())))
		c.random = rand.NewChaCha8([32]byte(h.Sum(nil)))
	}
	c.random.Read(b)
}

// noEvent is what a guest sees before its first event: nothing.
type noEvent struct{}

func (noEvent) Hook() abi.Hook  { return 0 }
func (noEvent) Time() time.Time { return time.Unix(0, 0) }

func (noEvent) Int64(abi.Object, abi.Field) (int64, abi.Errno) { return 0, abi.NotFound }
func (noEvent) Text(abi.Object, abi.Field) (string, abi.Errno) { return "", abi.NotFound }
func (noEvent) Lookup(abi.Object, abi.Field, string) (string, abi.Errno) {
	return "", abi.NotFound
}
func (noEvent) Entries(abi.Object, abi.Field) (iter.Seq2[string, string], abi.Errno) {
	return nil, abi.NotFound
}
func (noEvent) Find(int32, string) (abi.Object, abi.Errno)      { return 0, abi.NotFound }
func (noEvent) Containers(abi.Object) ([]abi.Object, abi.Errno) { return nil, abi.NotFound }
