package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

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
	left, err := ctx.Value(callKey{}).(*call).meter.refuel(int64(stack[0]))
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
	fuel int64
	time time.Duration // 0 leaves it to the context
}

// meter keeps account of one call.
type meter struct {
	allowance
	ctx     context.Context // the caller's
	start   time.Time
	account fuel.Meter
	left    api.MutableGlobal // the guest's fuel; nil while it is instantiated, and if it is not metered
	stack   api.MutableGlobal // what is left of the guest's stack, nil likewise
	charges uint
}

// chargesPerClock is how often the host charges before it looks at the clock, which takes
// longer than the rest of a small host function.
const chargesPerClock = 16

// begin gives the guest its first fuel and all of its stack.
func (m *meter) begin() {
	m.account = fuel.NewMeter(m.fuel)
	if m.left == nil {
		return
	}
	left, _ := m.account.Refuel(0)
	m.left.Set(uint64(left))
	m.stack.Set(fuel.DefaultStack)
}

// refuel returns more fuel for a guest that has none left, unless it may not go on.
func (m *meter) refuel(left int64) (int64, error) {
	more, err := m.account.Refuel(left)
	if err == nil {
		err = m.check()
	}
	return more, err
}

// check returns an error if the guest's time is up, or if nobody waits for it.
func (m *meter) check() error {
	if m.ctx.Err() != nil {
		return stopped(m.ctx)
	}
	if m.time == 0 {
		return nil
	}
	if took := time.Since(m.start); took > m.time {
		return &timeLimitError{limit: m.time, took: took, fuel: m.used()}
	}
	return nil
}

// charge takes fuel for what the host did, and now and then checks the time.
func (m *meter) charge(cost int64) error {
	if m.charges++; m.charges%chargesPerClock == 0 {
		if err := m.check(); err != nil {
			return err
		}
	}
	if m.left == nil {
		return nil
	}
	left, err := int64(m.left.Get())-cost, error(nil)
	if left < 0 {
		left, err = m.refuel(left)
	}
	m.left.Set(uint64(left))
	return err
}

// used is how much fuel the call has used, 0 if the guest is not metered.
func (m *meter) used() int64 {
	if m.left == nil {
		return 0
	}
	return m.account.Used(int64(m.left.Get()))
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

// Error names the limit, and what was used if the guest ran at all.
func (e *timeLimitError) Error() string {
	text := fmt.Sprintf("ran longer than its time limit of %v", e.limit)
	if e.took > 0 {
		text += fmt.Sprintf(": %v and %d units of fuel", e.took.Round(time.Millisecond), e.fuel)
	}
	return text
}

// Unwrap makes it a context.DeadlineExceeded.
func (e *timeLimitError) Unwrap() error { return context.DeadlineExceeded }

// within returns ctx with a time limit of a guest's own.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, &timeLimitError{limit: d})
}

// stopped says why a call under ctx, which is done, ended before the guest did.
// The caller's leaving is context.Canceled, and nobody's failure.
func stopped(ctx context.Context) error {
	if own, ok := context.Cause(ctx).(*timeLimitError); ok {
		return own
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("cut off because the caller went away: %w", ctx.Err())
	}
	return fmt.Errorf("ran longer than the call allows: %w", ctx.Err())
}
