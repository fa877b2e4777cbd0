package intercept

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// unseenError is the status of a request that plugins cannot judge.
func unseenError(why error) error {
	return status.Errorf(codes.InvalidArgument, "wasmproxy: plugins cannot check this request: %v", why)
}

// refuse returns the status that kubelet gets for a call that hooks did not let
// through: a plugin's refusal is what it asked for, FailedPrecondition if nothing else; a
// plugin's fault is Unavailable, so that kubelet tries again; a caller that went away
// gets its own reason back. The log tells of a plugin that is the reason: nobody else keeps
// why a pod did not start, or an exec was not let in. This file is the only place of the package that chooses a code.
func (c *call) refuse(ctx context.Context, err error) error {
	var refused *plugin.Rejection
	var of *plugin.Error
	code := codes.Internal
	switch byPlugin := errors.As(err, &of); {
	case errors.As(err, &refused):
		code = codes.Code(refused.Code)
	case byPlugin:
		code = codes.Unavailable
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if of != nil {
		c.Observer.Observe(ctx, &observe.CallRefused{
			Plugin: of.Plugin, Hook: of.Hook, Object: c.event.About(), Code: code.String(), Reason: of.Err.Error(),
		})
	}
	return status.Error(code, err.Error())
}

// unanswered reports whether a call may have ended before the backend answered it.
func unanswered(ctx context.Context, err error) bool {
	code := status.Code(err)
	return ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded
}
