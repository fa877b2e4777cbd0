package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// limiter makes guests that can be stopped. With meter, which keeps account of
// one call, it is all that the rest of the package knows of how that is done.
type limiter interface {
	// rewrite returns what is compiled in place of a module.
	rewrite(module []byte) ([]byte, error)
	// link gives a runtime what rewritten modules import.
	link(context.Context, wazero.Runtime) error
}

// metered guests pay for what they run.
type metered struct{}

func (metered) rewrite(module []byte) ([]byte, error) { return fuel.Instrument(module, fuel.Options{}) }

func (metered) link(ctx context.Context, r wazero.Runtime) error {
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := r.NewHostModuleBuilder(fuel.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), i64, i64).Export(fuel.Refuel).Instantiate(ctx)
	return wrap("instantiating the host functions of "+fuel.Module, err)
}

// refuel gives a guest its next slice of fuel, or ends its call.
func refuel(ctx context.Context, _ api.Module, stack []uint64) {
	left, err := frameOf(ctx).meter.refuel(int64(stack[0]))
	if err != nil {
		panic(&stop{err})
	}
	stack[0] = uint64(left)
}

// unlimited guests run for as long as they like.
type unlimited struct{}

func (unlimited) rewrite(module []byte) ([]byte, error)      { return module, nil }
func (unlimited) link(context.Context, wazero.Runtime) error { return nil }

// allowance is what one call of a guest may cost.
type allowance struct {
	fuel      int64
	slice     int64 // of fuel, after which the host looks at the clock
	time      time.Duration
	hostCalls int
}

// What a guest may use if nobody says otherwise. A unit of fuel takes 0.3 to 6 ns where
// it is compiled and 1 to 65 ns where it is interpreted (endless.wat and its like), so what is
// interpreted gets less: what it may use at the most takes 0.3 s, as its slice takes a tenth of a millisecond.
var (
	compiledHook     = allowance{fuel: DefaultFuel, slice: fuel.Slice, time: DefaultTimeout, hostCalls: DefaultHostCalls}
	interpretedHook  = allowance{fuel: InterpretedFuel, slice: fuel.Slice / 250, time: DefaultTimeout, hostCalls: DefaultHostCalls}
	compiledStart    = allowance{fuel: 500_000_000, slice: fuel.Slice, time: startTimeout, hostCalls: DefaultHostCalls}
	interpretedStart = allowance{fuel: 25_000_000, slice: fuel.Slice / 250, time: startTimeout, hostCalls: DefaultHostCalls}
)

// allowances returns what a plugin may use in a hook, where o names it, and in each
// function before its first event.
func (o *PluginOptions) allowances(interpret bool) (hook, start allowance) {
	hook, start = compiledHook, compiledStart
	if interpret {
		hook, start = interpretedHook, interpretedStart
	}
	hook.fuel, hook.time, hook.hostCalls = cmp.Or(o.Fuel, hook.fuel), cmp.Or(o.Timeout, hook.time), cmp.Or(o.HostCalls, hook.hostCalls)
	return hook, start
}

// meter keeps account of one call.
type meter struct {
	allowance
	ctx     context.Context // the caller's
	start   time.Time       // when the guest's time began; zero until somebody looks at the clock
	account fuel.Meter
	left    api.MutableGlobal // the guest's fuel; nil if it is not metered
	stack   api.MutableGlobal // what is left of the guest's stack, nil likewise
	owed    int64             // of what the host did, not yet taken from the guest
	charges uint
}

// chargesPerClock is how often the host charges before it looks at the clock, which takes
// longer than the rest of a small host function.
const chargesPerClock = 16

// begin gives the guest its first fuel and all of its stack.
func (m *meter) begin() {
	m.slice = min(m.slice, m.fuel) // what it owes is looked at no later
	m.account = fuel.NewMeter(m.fuel, m.slice)
	if m.left == nil {
		return
	}
	left, _ := m.account.Refuel(0)
	m.left.Set(uint64(left))
	m.stack.Set(fuel.DefaultStack)
}

// refuel returns more fuel for a guest that has none left, unless it may not go on.
func (m *meter) refuel(left int64) (int64, error) {
	more, err := m.account.Refuel(left - m.owed)
	m.owed = 0
	if err == nil {
		err = m.check()
	}
	return more, err
}

// run lets the guest's time run from now on, unless it does already. Most calls end
// within their first slice of fuel: to look at the clock would take longer than the rest of
// what a call costs, so a call does so at its first check.
func (m *meter) run() {
	if m.start.IsZero() {
		m.start = time.Now()
	}
}

// check returns an error if the guest's time is up, or if nobody waits for it. If both
// is so by the time that anybody looks, the guest's own time is what it was told of.
func (m *meter) check() error {
	m.run()
	took := time.Since(m.start)
	switch {
	case errors.Is(m.ctx.Err(), context.Canceled):
		return stopped(m.ctx)
	case took > m.time:
		return &timeLimitError{limit: m.time, took: took, fuel: m.used()}
	case plugin.CallTimeOf(m.ctx).Err() != nil:
		return fmt.Errorf("%w; it ran %v with %d units of fuel", plugin.CallTimeOf(m.ctx).Err(), took.Round(time.Millisecond), m.used())
	case m.ctx.Err() != nil:
		return fmt.Errorf("%w: %v and %d units of fuel", stopped(m.ctx), took.Round(time.Millisecond), m.used())
	}
	return nil
}

// charge takes fuel for what the host did, and now and then checks the time. It is
// taken from the guest's own when it has come to a slice: to get at that takes
// longer than the rest of a small host function.
func (m *meter) charge(cost int64) error {
	m.owed += cost
	if m.charges++; m.charges%chargesPerClock == 0 {
		if err := m.check(); err != nil {
			return err
		}
	}
	if m.owed < m.slice || m.left == nil {
		return nil
	}
	more, err := m.refuel(int64(m.left.Get()))
	m.left.Set(uint64(more))
	return err
}

// settle returns an error if a call that has ended used more fuel than it may: of what
// it owes, it may have paid nothing yet.
func (m *meter) settle() error {
	if m.charges == 0 {
		return nil
	}
	if used := m.used(); used > m.fuel {
		return &stop{&fuel.Error{Limit: m.fuel, Used: used}}
	}
	return nil
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
}

// Error names the limit and what was used.
func (e *timeLimitError) Error() string {
	return fmt.Sprintf("ran longer than its time limit of %v: %v and %d units of fuel", e.limit, e.took.Round(time.Millisecond), e.fuel)
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
