package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// refuel gives a guest its next slice of fuel, or ends its call.
func refuel(ctx context.Context, _ api.Module, stack []uint64) {
	f, ctx := frameOf(ctx)
	left, err := f.meter.refuel(ctx, int64(stack[0]))
	if err != nil {
		panic(&stop{err})
	}
	stack[0] = uint64(left)
}

// allowance is what one call of a guest may cost.
type allowance struct {
	fuel      int64
	slice     int64 // of fuel, at the most
	time      time.Duration
	hostCalls int
}

// allowances are those of hooks.
type allowances struct{ usual, synchronize, tick allowance }

// What a guest may use if nobody says otherwise. A unit of fuel takes 0.3 to 6 ns where
// it is compiled and 1 to 65 ns where it is interpreted (endless.wat and its like), so what is
// interpreted gets less: what it may use at the most takes 0.3 s, as its slice takes a tenth of a millisecond.
var (
	usualLimits = abi.Limits{
		Fuel: DefaultFuel, Memory: DefaultMemoryPages << 16, TimeMS: 500, HostCalls: 1000,
		TickHostCalls: 20_000, // of the host in Tick and Synchronize: 15 of them for each of 1,300 containers
		TickFuel:      DefaultTickFuel, TickTimeMS: 1000,
	}
	compiledStart    = allowance{500_000_000, fuel.MaxSlice, startTimeout, int(usualLimits.HostCalls)}
	interpretedStart = allowance{25_000_000, interpretedSlice, startTimeout, int(usualLimits.HostCalls)}
)

const interpretedSlice = 2_000

// start returns what a plugin may use in each function before its first event.
func (o *PluginOptions) start() allowance {
	if o.Interpret {
		return interpretedStart
	}
	return compiledStart
}

// allowances returns what a plugin with these limits may use in its hooks.
func (o *PluginOptions) allowances(l abi.Limits) (all allowances) {
	of := func(fuel, ms, hostCalls int64, timeout time.Duration) allowance {
		a := allowance{fuel, o.start().slice, time.Duration(ms) * time.Millisecond, int(hostCalls)}
		if timeout > 0 { // which may be a part of a millisecond
			a.time = min(a.time, timeout)
		}
		return a
	}
	all.usual = of(l.Fuel, l.TimeMS, l.HostCalls, o.Timeout)
	all.synchronize = of(l.Fuel, l.TimeMS, l.TickHostCalls, o.Timeout)
	all.tick = of(l.TickFuel, l.TickTimeMS, l.TickHostCalls, cmp.Or(o.TickTimeout, o.Timeout))
	return all
}

// meter keeps account of one call.
type meter struct {
	allowance
	tick    bool           // the call is a Tick, with limits of its own
	limits  *abi.Limits    // of the plugin's manifest; nil before the first event, when nobody can set limits
	budget  *plugin.Budget // of all plugins of the call; nil if there is none
	start   time.Time      // when the guest's time began
	due     time.Time      // when the first of all limits of time is reached; zero until somebody looks at the clock
	seen    time.Time      // when somebody looked at the clock last; zero if nobody did
	slicing time.Time      // when the guest got its present slice
	account fuel.Meter
	left    api.MutableGlobal // the guest's fuel; nil if it is not metered
	stack   api.MutableGlobal // what is left of the guest's stack, nil likewise
	owed    int64             // of what the host did, not yet taken from the guest
	unseen  int64             // of what the host did since somebody looked at the clock
}

// What the host does, in units of fuel, before it looks at the clock, and before it takes
// the fuel from the guest. Both take longer than the rest of a small host function.
const (
	lookFuel = 16 * hostCallFuel // or 25 KiB moved
	owedFuel = 20_000
)

// begin gives the guest its first fuel and all of its stack.
func (m *meter) begin() {
	m.account = fuel.NewMeter(m.fuel, m.slice)
	m.slicing = m.start
	if m.left == nil {
		return
	}
	left, _ := m.account.Refuel(0)
	m.left.Set(uint64(left))
	m.stack.Set(fuel.DefaultStack)
}

// refuel returns more fuel for a guest that has none left, unless it may not go on.
func (m *meter) refuel(ctx context.Context, left int64) (int64, error) {
	now := time.Now()
	m.account.Pace(now.Sub(m.slicing))
	m.slicing = now
	more, err := m.account.Refuel(left - m.owed)
	m.owed = 0
	if err != nil {
		return more, m.spent(err)
	}
	return more, m.check(ctx, now)
}

// check returns an error if, at a time that is now, the guest's time is up or nobody waits
// for it.
func (m *meter) check(ctx context.Context, now time.Time) error {
	if m.due.IsZero() {
		m.due = m.start.Add(m.time)
		if end := m.budget.End(); !end.IsZero() {
			m.due = earlier(m.due, end)
		}
		if end, ok := ctx.Deadline(); ok {
			m.due = earlier(m.due, end)
		}
	}
	m.seen, m.unseen = now, 0
	if now.Before(m.due) && !plugin.Gone(ctx) {
		return nil
	}
	took := now.Sub(m.start)
	switch { // if several limits are reached by now, the guest's own is the one that its author knows
	case errors.Is(ctx.Err(), context.Canceled):
		return stopped(ctx)
	case took >= m.time:
		return &timeLimitError{limit: m.time, took: took, fuel: m.used(), remedy: m.remedy("time_ms", m.tick, m.time.Milliseconds())}
	case m.budget.Err() != nil:
		return fmt.Errorf("%w; it ran %v with %d units of fuel", m.budget.Err(), took.Round(time.Millisecond), m.used())
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %v and %d units of fuel", stopped(ctx), took.Round(time.Millisecond), m.used())
	}
	return nil // the context's own clock is a little late
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// spent adds to the error of a call that used all its fuel what to do about it.
func (m *meter) spent(err error) error {
	remedy := m.remedy("fuel", m.tick, m.fuel)
	if remedy != "" {
		remedy = ", or " + remedy
	}
	return &plugin.ClassError{Class: observe.ClassFuel, Err: fmt.Errorf("%w: the plugin may loop without end%s", err, remedy)}
}

// remedy says which key raises the limit that is held, which the manifest has under this key, or under that of Tick: the plugin's
// JSON's, or the manifest's if that is as low; "" if none does.
func (m *meter) remedy(key string, tick bool, held int64) string {
	if m.limits == nil {
		return ""
	}
	if tick {
		key = "tick_" + key
	}
	row := &plugin.Limits[slices.IndexFunc(plugin.Limits, func(l plugin.Limit) bool { return l.Key == key })]
	if row.Value(m.limits) == held {
		return "raise limits." + key + " in its manifest"
	}
	return "raise " + row.File
}

// used is how much fuel the call has used, 0 if the guest is not metered.
func (m *meter) used() int64 {
	if m.left == nil {
		return 0
	}
	return m.account.Used(int64(m.left.Get()) - m.owed)
}

// overflowed reports whether the guest had no stack left for a call.
func (m *meter) overflowed() bool { return m.stack != nil && int32(m.stack.Get()) < 0 }

// stop is what a host function panics with when a guest has used up a budget or nobody
// waits for it any more.
type stop struct{ error }

func (s *stop) Unwrap() error { return s.error }

// timeLimitError says that the guest's own time was up.
type timeLimitError struct {
	limit, took time.Duration
	fuel        int64
	remedy      string // "" if there is none
}

// Error names the limit and what was used.
func (e *timeLimitError) Error() string {
	text := fmt.Sprintf("ran longer than its time limit of %v: %v and %d units of fuel", e.limit, e.took.Round(time.Millisecond), e.fuel)
	if e.remedy != "" {
		text += "; " + e.remedy
	}
	return text
}

// Unwrap makes it a context.DeadlineExceeded.
func (e *timeLimitError) Unwrap() error { return context.DeadlineExceeded }

// untilReady bounds all that is done for an instance before its first event.
func untilReady(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, startTimeout, &plugin.TimeError{Of: "the time until it is ready for events", Limit: startTimeout})
}

// stopped says why a call under ctx, which is done, ended before the guest did.
// The caller's leaving is context.Canceled, and nobody's failure.
func stopped(ctx context.Context) error {
	if plugin.Gone(ctx) {
		return fmt.Errorf("cut off because the caller went away: %w", context.Canceled)
	}
	if limit := new(plugin.TimeError); errors.As(context.Cause(ctx), &limit) {
		return limit
	}
	return fmt.Errorf("ran longer than the call allows: %w", ctx.Err())
}
