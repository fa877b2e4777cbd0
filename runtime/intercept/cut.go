package intercept

import (
	"context"
	"path"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
)

// Cut takes the plugins of chains out of what is under way. Hooks that run or wait end at once,
// and calls that have not reached the container runtime go there as they came. A nil Cut never
// begins. Its methods are safe for concurrent use.
type Cut struct {
	ended func() error // nil until it begins
	after func(func()) (stop func() bool)
	end   context.CancelFunc
}

// NewCut returns a Cut that has not begun.
func NewCut() *Cut {
	ctx, cancel := context.WithCancel(context.Background())
	return &Cut{ended: ctx.Err, after: func(f func()) func() bool { return context.AfterFunc(ctx, f) }, end: cancel}
}

// Begin begins the cut, which nothing ends.
func (c *Cut) Begin() { c.end() }

func (c *Cut) hasBegun() bool { return c != nil && c.ended() != nil }

// Context returns a context that ends with ctx, or when the cut begins.
func (c *Cut) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return c.within(context.WithCancel(ctx))
}

// within has the cut end a context, too.
func (c *Cut) within(ctx context.Context, cancel context.CancelFunc) (context.Context, context.CancelFunc) {
	if c == nil {
		return ctx, cancel
	}
	release := c.after(cancel)
	return ctx, func() {
		release()
		cancel()
	}
}

// passCut sends a call on as it came, since the cut has begun. The call is in its object's queue.
func (c *call) passCut(ctx context.Context, next cri.Next) (answer *cri.Frame, err error) {
	c.rollback()
	r := new(runtimeapi.UpdateContainerResourcesRequest) // plugins may have changed c.req
	if _, updates := c.req.(*runtimeapi.UpdateContainerResourcesRequest); !updates || c.Request.Decode(r) != nil {
		return next(ctx, c.Request)
	}
	pass := func() error {
		answer, err = passUpdate(ctx, &c.Enforcer, r, c.Request, next)
		return err
	}
	if c.event == nil {
		err = pass()
		return answer, err
	}
	// Values of plugins are yet to be undone.
	err = c.Enforcer.Around(ctx, c.event.About(), c.event.container, r, path.Base(c.method.Name), pass)
	return answer, err
}

// PassUpdate sends an update of a container's resources on as it came, after what is under way
// for the container, and has the ledger note what kubelet wants: values of plugins that are yet to
// be undone must not come to undo kubelet's new ones. hold ends the wait; it is no bound of the call.
func PassUpdate(ctx, hold context.Context, values *enforce.Enforcer, request *cri.Frame, next cri.Next) (*cri.Frame, error) {
	r := new(runtimeapi.UpdateContainerResourcesRequest)
	if request.Decode(r) != nil {
		return next(ctx, request)
	}
	id := r.GetContainerId()
	if known, ok := values.Ledger.Find(id); ok {
		id = known.Container // the queue goes by whole IDs
	}
	release, _ := values.Queue.Acquire(hold, id) // after an error the call goes on all the same
	defer release()
	return passUpdate(ctx, values, r, request, next)
}

// passUpdate sends an update on as kubelet sent it, and has it noted.
func passUpdate(
	ctx context.Context, values *enforce.Enforcer, r *runtimeapi.UpdateContainerResourcesRequest, request *cri.Frame, next cri.Next,
) (*cri.Frame, error) {
	id, ok := values.Ledger.Find(r.GetContainerId())
	answer, err := next(ctx, request)
	if ok && err == nil {
		values.Updated(id, r)
	}
	return answer, err
}
