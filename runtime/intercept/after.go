package intercept

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// observe tells the store of a call that succeeded, before the caller hears of
// it: kubelet's next call may follow at once. It returns the event of the post hook, nil if
// there is none.
func (c *call) observe(ctx context.Context, answer *cri.Frame) (after *event) {
	if c.method.Effect == cri.Nothing && !c.Chain.Hooks().Has(c.method.Post) {
		return nil
	}
	resp := c.method.NewResponse()
	if err := answer.Decode(resp); err != nil {
		c.Observer.Observe(ctx, &observe.StoreNotUpdated{Method: c.method.Name, Err: err})
		return nil
	}
	c.markCreated(resp)
	if c.method.Effect != cri.Nothing {
		c.Store.Observe(c.requested(), c.req, resp)
	}
	if c.event == nil {
		return nil
	}
	return c.event.after(&c.method, resp)
}

// after returns the event of the post hook: of what the call has left behind, with resp, or nil
// if it has failed.
func (e *event) after(m *cri.Method, resp proto.Message) *event {
	after := new(ownedEvent)
	after.event = event{
		hook: m.Post, at: time.Now(), req: e.req, resp: resp,
		host: e.host, node: e.node,
	}
	if e.pod != nil {
		after.pod = *e.pod
		after.event.pod = &after.pod
	}
	if e.container != nil {
		after.container = *e.container
		after.event.container = &after.container
	}
	switch {
	case resp == nil:
		return &after.event
	case m.Effect != cri.Makes:
	case m.Object == abi.Pod:
		after.pod.ID = cri.PodID(resp)
	default:
		after.container.ID = cri.ContainerID(resp)
	}
	if record, ok := e.host.Store.Pod(after.pod.ID); ok {
		after.pod.State = crifield.PodState(record.State)
	}
	if record, ok := e.host.Store.Container(after.container.ID); ok {
		after.container.State = crifield.ContainerState(record.State)
	}
	return &after.event
}

// requested is the request as kubelet sent it, where the store wants it: of a pod, and of a
// container whose pod's config is not fully known. It is nil if plugins changed nothing, and
// for other calls, which would have to be decoded once more for nobody.
func (c *call) requested() proto.Message {
	wanted := c.dirty && c.method.Effect == cri.Makes
	if wanted && c.method.Object == abi.Container {
		pod, _ := c.Store.Pod(cri.PodID(c.req))
		wanted = pod.Unreported != 0
	}
	if !wanted {
		return nil
	}
	req := c.method.NewRequest()
	if err := c.Request.Decode(req); err != nil { // it could be decoded a moment ago
		return nil
	}
	return req
}

// post runs the post hook of these plugins once the answer is on its way, in the object's queue. Until then it keeps them from
// being closed: they may have wishes noted, and whoever ends those of earlier generations waits for that.
func (c *call) post(ctx context.Context, e *event, chain *plugin.Chain) {
	if e == nil || !chain.Hooks().Has(e.hook) || c.Cut.hasBegun() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	release := c.Keep()
	begun := c.Queue.Go(e.key(), func() {
		defer release()
		c.runPost(ctx, e, chain)
	})
	if !begun {
		release()
		c.Observer.Observe(ctx, &observe.PostHookDropped{Hook: e.hook, Object: e.About()})
	}
}

// runPost has no caller who would hear of an error, or survive a panic.
func (c *call) runPost(ctx context.Context, e *event, chain *plugin.Chain) {
	defer func() {
		if r := recover(); r != nil {
			c.Observer.Observe(ctx, &observe.Panicked{
				During: "a post hook", Hook: e.hook, Object: e.About(), Panic: fmt.Sprint(r), Stack: string(debug.Stack()),
			})
		}
	}()
	ctx, cancel := c.Cut.Context(ctx)
	defer cancel()
	owned, err := chain.Dispatch(ctx, plugin.NewBudget(c.CallTime), e)
	if c.Cut.hasBegun() {
		return
	}
	if err != nil {
		c.Observer.Observe(ctx, &observe.PostHookFailed{Hook: e.hook, Object: e.About(), Err: err})
		return
	}
	_, _ = c.applyFiles(ctx, e, abi.Pod, owned) // a failure is an event
	_, _ = c.applyFiles(ctx, e, abi.Container, owned)
	c.deferUpdates(ctx, e, owned)
}
