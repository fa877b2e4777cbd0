package intercept

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Tick calls hook Tick of a member once, and returns when what it wants of pods and
// containers has been carried out. A failure is an event. Only one Tick of a plugin may run
// at a time.
func Tick(ctx context.Context, o Options, m plugin.Member) {
	m.Hooks &= abi.HookSetOf(abi.Tick)
	_ = newInterceptor(o, cri.Method{}).standalone(ctx, abi.Tick, nil, m) // ctx has ended, or the chain has told of it
}

// standalone calls one plugin in a hook of no call, about a pod or nil, and carries out
// what it wants. The error is ctx's, or a panic's, which no caller would survive.
func (i *interceptor) standalone(ctx context.Context, hook abi.Hook, pod *crifield.Pod, m plugin.Member) (err error) {
	e := new(event)
	i.begin(e, hook, pod)
	defer func() {
		if r := recover(); r != nil {
			i.Observer.Observe(ctx, &observe.Panicked{
				During: "a hook", Hook: hook, Object: e.About(), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx, cancel := i.Cut.Context(ctx)
	defer cancel()
	owned, err := i.NewChain(m).Dispatch(ctx, plugin.NewBudget(i.CallTime), e)
	if i.Cut.hasBegun() {
		return context.Canceled
	}
	_, _ = i.applyFiles(ctx, e, abi.Pod, owned) // a failure is an event
	reconciled := i.deferUpdates(ctx, e, owned)
	if hook == abi.Tick { // which is in no queue
		reconciled.Wait(context.WithoutCancel(ctx))
	}
	return err
}
