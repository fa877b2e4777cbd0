package intercept

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// callError is the status that kubelet gets for a call that hooks did not let
// through: a plugin's refusal is what it asked for, FailedPrecondition if nothing else; a
// plugin's fault is Unavailable, so that kubelet tries again; a caller that went away
// gets its own reason back. This file is the only place of the package that chooses a code.
func callError(err error) error {
	var refused *plugin.Rejection
	var failed *plugin.Error
	switch {
	case errors.As(err, &refused):
		return status.Error(codes.Code(refused.Code), err.Error())
	case errors.As(err, &failed):
		return status.Error(codes.Unavailable, err.Error())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	return status.Error(codes.Internal, err.Error())
}

// unseenError is the status of a request that plugins cannot judge.
func unseenError(why error) error {
	return status.Errorf(codes.InvalidArgument, "wasmproxy: plugins cannot check this request: %v", why)
}

// refuse is callError, which the log tells of if a plugin is the reason: nobody else keeps
// why a pod did not start, or an exec was not let in.
func (c *call) refuse(ctx context.Context, err error) error {
	answer := callError(err)
	var of *plugin.Error
	if errors.As(err, &of) {
		c.Observer.Observe(ctx, &observe.CallRefused{
			Plugin: of.Plugin, Hook: of.Hook, Object: c.event.About(), Code: status.Code(answer).String(), Reason: of.Err.Error(),
		})
	}
	return answer
}

// unanswered reports whether a call may have ended before the backend answered it.
func unanswered(ctx context.Context, err error) bool {
	code := status.Code(err)
	return ctx.Err() != nil || code == codes.Canceled || code == codes.DeadlineExceeded
}
