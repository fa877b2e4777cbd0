package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// An ending is what makes a context of two deadlines end.
type ending struct {
	name         string
	caller       time.Duration // 0: it has no deadline
	outer, inner time.Duration
	by           func(caller, own context.CancelFunc)
}

// Contexts of Until, made of each other, end when, as and because of what those of the
// standard library do, whether or not anybody waited for that before.
func TestUntil(t *testing.T) {
	alone := func(_, _ context.CancelFunc) { time.Sleep(time.Minute) }
	for _, e := range []ending{
		{"the inner ends first", 0, 2 * time.Second, time.Second, alone},
		{"the outer ends first", 0, time.Second, 2 * time.Second, alone},
		{"the caller ends first", time.Second, 3 * time.Second, 2 * time.Second, alone},
		{"the outer has ended", 0, -time.Second, time.Second, alone},
		{"the inner has ended", 0, time.Second, -time.Second, alone},
		{"the caller goes away", 0, 2 * time.Second, time.Second, func(caller, _ context.CancelFunc) { time.Sleep(time.Millisecond); caller() }},
		{"it is cancelled", 0, 2 * time.Second, time.Second, func(_, own context.CancelFunc) { time.Sleep(time.Millisecond); own() }},
	} {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				want := e.end(t, waits, context.WithDeadlineCause)
				if got := e.end(t, waits, plugin.Until); got != want {
					t.Errorf("%s, waited for %v: %+v, want %+v", e.name, waits, got, want)
				}
			})
		}
	}
}

// An ended context is what is seen of it.
type ended struct {
	deadline, after time.Duration // after is 0 if nobody waits
	begins, err     error
	cause           error
	value           any
}

var errOuter, errInner = errors.New("outer"), errors.New("inner")

// end makes the contexts with until, ends them, and looks at the inner one.
func (e ending) end(t *testing.T, waits bool, until func(context.Context, time.Time, error) (context.Context, context.CancelFunc)) (got ended) {
	type key struct{}
	start := time.Now()
	caller, goAway := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	defer goAway()
	if e.caller > 0 {
		var cancel context.CancelFunc
		caller, cancel = context.WithTimeout(caller, e.caller)
		defer cancel()
	}
	outer, cancel := until(caller, start.Add(e.outer), errOuter)
	defer cancel()
	ctx, own := until(outer, start.Add(e.inner), errInner)
	defer own()
	if waits {
		context.AfterFunc(ctx, func() { got.after = time.Since(start) })
	}
	end, _ := ctx.Deadline()
	got.deadline, got.begins = end.Sub(start), ctx.Err()
	e.by(goAway, own)
	synctest.Wait()
	got.err, got.cause, got.value = ctx.Err(), context.Cause(ctx), ctx.Value(key{})
	<-ctx.Done()
	return got
}

// BenchmarkUntil is what the limits of one call cost: made of each other, and waited for
// as a hook server's call waits, or not, as most guests' do not.
func BenchmarkUntil(b *testing.B) {
	for _, kind := range []struct {
		name  string
		until func(context.Context, time.Time, error) (context.Context, context.CancelFunc)
	}{{"standard", context.WithDeadlineCause}, {"until", plugin.Until}} {
		for _, waits := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/waits=%v", kind.name, waits), func(b *testing.B) {
				caller, cancel := context.WithTimeout(b.Context(), time.Hour)
				defer cancel()
				b.ReportAllocs()
				for b.Loop() {
					now := time.Now()
					budget, cancel1 := kind.until(caller, now.Add(time.Minute), errOuter)
					call, cancel2 := kind.until(budget, now.Add(7*time.Second), errOuter)
					one, cancel3 := kind.until(call, now.Add(2*time.Second), errInner)
					if waits {
						one.Done()
					}
					cancel3()
					cancel2()
					cancel1()
				}
			})
		}
	}
}
