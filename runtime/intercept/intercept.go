// Package intercept is where CRI and hooks meet: it turns a CRI message into an
// event, asks the chain, carries the changes into the message, and tells the
// store and package enforce what the backend answered.
//
// It is the only package that knows both vocabularies. What a plugin is, in
// which order plugins run and who owns a field is package plugin's; what is
// known of a pod is package pods'; that values hold is package enforce's; how
// bytes travel is package proxy's.
package intercept

import (
	"context"
	"path"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// How long host work may take that no plugin's own limit bounds. locateTime and imageTime are spent
// while a plugin waits for what it reads; the runtime's answer comes for later reads.
const (
	readThroughTime = 2 * time.Second
	locateTime      = 50 * time.Millisecond
	imageTime       = 300 * time.Millisecond
)

// reserve is what is kept of the caller's deadline for sending and decoding,
// before the rest is shared between hooks and backend.
const reserve = 100 * time.Millisecond

// DefaultCallTime is what all plugins of one call may take together, if none of them may take longer.
const DefaultCallTime = time.Second

// Options are the parts that calls are intercepted with. All are required but
// AfterFailure, and those whose comments say so.
type Options struct {
	enforce.Enforcer // the parts of the node, and what has the values of plugins hold
	Chain            *plugin.Chain
	// CallTime is what all plugins of one call may take together, those of its
	// post hook counted anew.
	CallTime time.Duration
	// AfterFailure are the plugins whose post hooks run after calls that failed,
	// too; nil: no others do.
	AfterFailure *plugin.Chain
	// Keep keeps the chain's plugins from being closed until release is called.
	Keep func() (release func())
	// ShowSecrets leaves in what plugins say the secrets that they may have read. It is
	// for who has put them there.
	ShowSecrets bool
	// NewChain makes a chain like Chain of one member, for hooks apart from calls.
	NewChain func(...plugin.Member) *plugin.Chain
	// Images tells of images what no call of a container has; nil: nobody does.
	Images *pods.Images
	// Synchronized are those of the chain's plugins that are told of pods older
	// than they are.
	Synchronized []*Synchronized
	// Generations are those of the plugins, by their ids: see enforce.Wish.
	Generations map[string]string
	// Cut takes the chain's plugins out of what is under way; nil if nothing will.
	Cut *Cut
	// Lost is called after a call that changes pods or containers has ended without the backend's
	// answer: its caller went away, or its time was up, and the backend may have done it. nil: the
	// store learns of it from later calls alone.
	Lost func()
	// Around returns an interceptor that calls that of a method; it gets those of methods that
	// plugins hook. nil: they are used as they are.
	Around func(method string, inner cri.Interceptor) cri.Interceptor
	// ExemptNamespaces are those whose pods no plugin can keep from running; none if empty.
	ExemptNamespaces []string
}

// Router returns the routes of the chain: an interceptor for every method that
// a plugin hooks or the store follows; nil for all others, whose bytes pass.
func Router(o Options) cri.Router {
	routes := make(map[string]cri.Interceptor, len(cri.Methods))
	for _, m := range cri.Methods {
		hooked := o.Chain.Hooks()&m.Hooks() != 0
		if m.Effect != cri.Nothing || hooked {
			routes[m.Name] = (&interceptor{o, m}).intercept
		}
		if hooked && o.Around != nil {
			routes[m.Name] = o.Around(m.Name, routes[m.Name])
		}
	}
	return func(method string) cri.Interceptor { return routes[method] }
}

// interceptor answers the calls of one method, or, with the zero method, asks
// plugins apart from calls.
type interceptor struct {
	Options
	method cri.Method
}

// call is one call on its way. It belongs to the goroutine that serves it.
type call struct {
	*interceptor
	*cri.Call                // Request is as it came
	req       proto.Message  // Request decoded, and changed by plugins
	event     *event         // of the pre hook; nil if the object is not known, or nothing needs it
	dirty     bool           // req is no longer as Request
	owned     []plugin.Owned // by plugins of the pre hook
	rollback  func()         // ends what plugins wanted before the runtime was asked

	missing bool // the backend does not know the call's object
	unread  bool // the call's container could not be read from the backend
}

// intercept takes one call through its hooks. What the backend answers goes to
// the caller as it came; what the proxy does after that answer cannot change it.
func (i *interceptor) intercept(ctx context.Context, of *cri.Call, next cri.Next) (*cri.Frame, error) {
	of.Followed, of.Hooked = i.method.Effect != cri.Nothing, i.Chain.Hooks()&i.method.Hooks() != 0
	if of.Unseen != nil {
		return i.unseen(ctx, of, next)
	}
	c := &call{interceptor: i, Call: of, req: i.method.NewRequest(), rollback: func() {}}
	if err := of.Request.Decode(c.req); err != nil {
		return c.undecodable(ctx, err, next)
	}
	hookCtx, cancel := c.Cut.within(hookContext(ctx))
	defer cancel()
	defer c.acquire(hookCtx)()
	err := c.prepare(hookCtx)
	if err == nil {
		err = c.pre(ctx, hookCtx)
	}
	if err == nil {
		c.askAhead()
		c.repeatWishes()
		c.nameWithIdle()
	}
	if c.Cut.hasBegun() {
		return c.passCut(ctx, next)
	}
	out := of.Request
	if err == nil && c.dirty {
		out, err = cri.NewFrame(c.req)
	}
	if err != nil {
		c.rollback()
		return nil, c.refuse(ctx, err)
	}
	answer, after, err := c.forward(ctx, out, next)
	if err != nil {
		ended := status.Code(err) == codes.Unavailable // the connection, or there was none
		if !ended && !unanswered(ctx, err) {           // else the backend may have done it, with what plugins want
			c.rollback()
		}
		if c.AfterFailure != nil && c.event != nil {
			c.post(ctx, c.event.after(&c.method, nil), c.AfterFailure)
		}
		return answer, err
	}
	c.noteFields(ctx, after)
	c.deferUpdates(ctx, c.event, c.owned)
	c.post(ctx, after, c.Chain)
	return answer, nil
}

// forward asks the backend, and brings the store and the values of plugins to where its answer leaves them. It returns
// the event of the post hook, nil if there is none.
func (c *call) forward(ctx context.Context, out *cri.Frame, next cri.Next) (answer *cri.Frame, after *event, err error) {
	defer c.trackCreations()()
	pass := func() error {
		if answer, err = next(ctx, out); err != nil {
			if c.Lost != nil && c.method.Effect != cri.Nothing && unanswered(ctx, err) {
				c.Lost()
			}
			return err
		}
		if after = c.observe(ctx, answer); after != nil {
			c.enforceOwn(ctx, after)
		}
		return nil
	}
	switch r, updates := c.req.(*runtimeapi.UpdateContainerResourcesRequest); {
	case !updates:
		err = pass()
	case c.event != nil:
		err = c.Enforcer.Around(ctx, c.event.About(), c.event.container, r, path.Base(c.method.Name), pass)
	default: // the runtime tells nothing about the container, of which the ledger may know
		_, err = passUpdate(ctx, &c.Enforcer, r, out, func(context.Context, *cri.Frame) (*cri.Frame, error) { return nil, pass() })
	}
	return answer, after, err
}

// unseen refuses a call whose request does not show all that it does, if plugins hook it. Without a hook
// it passes, and the store reads from the backend what it has made.
func (i *interceptor) unseen(ctx context.Context, of *cri.Call, next cri.Next) (*cri.Frame, error) {
	if of.Hooked && !i.Cut.hasBegun() {
		return nil, unseenError(of.Unseen)
	}
	answer, err := next(ctx, of.Request)
	if i.Lost != nil && (err == nil || unanswered(ctx, err)) {
		i.Lost()
	}
	return answer, err
}

// undecodable passes a request that this build cannot read as it came, unless a plugin with policy Fail hooks it and no
// bypass has begun.
func (c *call) undecodable(ctx context.Context, err error, next cri.Next) (*cri.Frame, error) {
	if id, refuses := c.refuses(c.method.Pre); refuses && !c.Cut.hasBegun() {
		return nil, c.refuse(ctx, &plugin.Error{Plugin: id, Hook: c.method.Pre, Err: err})
	}
	c.Observer.Observe(ctx, &observe.HooksSkipped{Method: c.method.Name, Err: err})
	return next(ctx, c.Request)
}

// refuses reports whether a plugin must not be passed by. None can hold up what
// is to stop or go.
func (c *call) refuses(hook abi.Hook) (id string, yes bool) {
	if hook.Info().Phase != abi.Before {
		return "", false
	}
	return c.Chain.Refuses(hook)
}

// pre runs the pre hook, if there is one and the object is known, after the
// object's post hooks have ended or the time for hooks is used up. It applies what the plugins
// want of the call and of its pod's cgroup.
func (c *call) pre(ctx, hookCtx context.Context) error {
	hook := c.method.Pre
	if !c.Chain.Hooks().Has(hook) {
		return nil
	}
	if c.event == nil {
		return c.unknown(ctx, hook)
	}
	if c.event.sent == nil { // else acquire has waited
		if err := c.Queue.Wait(hookCtx, c.event.key()); err != nil && !c.Cut.hasBegun() {
			c.Observer.Observe(ctx, &observe.PostHooksLate{Method: c.method.Name, Hook: hook, Object: c.event.About(), Err: err})
		}
	}
	budget := plugin.NewBudget(c.CallTime)
	owned, err := c.Chain.Dispatch(hookCtx, budget, c.event)
	c.Plugins = budget.Spent()
	if err != nil {
		return err
	}
	c.owned = owned
	for _, o := range owned {
		c.dirty = c.dirty || o.Change.OfMessage()
	}
	c.rollback, err = c.applyFiles(ctx, c.event, abi.Pod, owned)
	return err
}

// unknown passes by the hook of an object that neither the store nor the
// backend could tell about, unless a plugin must not be passed by. That an
// object does not exist is the backend's own answer to give: kubelet knows what
// to do with its NotFound.
func (c *call) unknown(ctx context.Context, hook abi.Hook) error {
	if c.missing {
		return nil
	}
	if id, refuses := c.refuses(hook); refuses {
		return &plugin.Error{Plugin: id, Hook: hook, Err: errUnknownObject}
	}
	c.Observer.Observe(ctx, &observe.HooksSkipped{Method: c.method.Name, Hook: hook, Err: errUnknownObject})
	return nil
}

// hookContext returns the context of everything before the backend's turn. It ends when
// half of what the caller's deadline leaves is used up, less the reserve. Without a
// deadline the plugins' budget is the bound.
func hookContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	now := time.Now()
	half := max(0, (deadline.Sub(now)-reserve)/2)
	late := &plugin.TimeError{Of: "what the caller's deadline leaves for hooks", Limit: half.Round(time.Millisecond)}
	return context.WithDeadlineCause(ctx, now.Add(half), late)
}
