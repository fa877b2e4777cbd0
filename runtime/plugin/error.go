package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Error says which plugin made a call fail, and at which hook.
type Error struct {
	Plugin string // the plugin's id
	Hook   abi.Hook
	Err    error // a *Rejection, a *ConflictError, ErrNotLoaded, or what went wrong
}

func (e *Error) Error() string { return fmt.Sprintf("plugin %s: %s: %v", e.Plugin, e.Hook, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Exempted is the event of an error that does not end its call, since the namespace of the pod is exempt.
func (e *Error) Exempted(o observe.Object) *observe.CallExempted {
	return &observe.CallExempted{Plugin: e.Plugin, Hook: e.Hook, Object: o, Reason: e.Err.Error()}
}

// Rejection is a plugin's decision to refuse a call. It is not a fault.
type Rejection struct {
	Code   uint32 `json:"code"` // a gRPC code: one of the abi.Reject constants
	Reason string `json:"reason"`
}

func (r *Rejection) Error() string { return "rejected: " + r.Reason }

// ErrNotLoaded is the failure of a plugin that is known but does not run: its
// file is broken, or it is still being compiled.
var ErrNotLoaded = errors.New("plugin is not loaded")

// ErrAway is the failure of a plugin in another process that cannot be reached.
// It costs no time to call it again, and it may be back at any moment.
var ErrAway = errors.New("is away")

// ErrBusy is the failure of a plugin that did not come to run, because others did for as
// long as the call could wait. It says nothing of the plugin.
var ErrBusy = errors.New("not run")

// ConflictError says that two plugins want different values of one field.
type ConflictError struct {
	Change Change // what the later plugin wants
	First  string // the plugin that set it before
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflict over %s, which plugin %s has set to another value", e.Change.Target(), e.First)
}

func (e *ConflictError) Unwrap() error { return abi.Conflict }

// WriteError says why the host refused a plugin something, such as a change.
type WriteError struct {
	Target string // the field, as Change.Target names it; or another function and what it was called for
	Reason string
	Errno  abi.Errno
}

func (e *WriteError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("%s: %v", e.Target, e.Errno)
	}
	return fmt.Sprintf("%s: %v: %s", e.Target, e.Errno, e.Reason)
}

func (e *WriteError) Unwrap() error { return e.Errno }

// TimeError says that there was no more time, of whose time there was how much.
// It is a context.DeadlineExceeded.
type TimeError struct {
	Of    string // "its time for one call"
	Limit time.Duration
}

func (e *TimeError) Error() string { return fmt.Sprintf("%s, %v, is used up", e.Of, e.Limit) }
func (e *TimeError) Unwrap() error { return context.DeadlineExceeded }

// ErrnoOf returns the ABI's number for an error of an Adjustment's method:
// abi.OK for nil, abi.Invalid for an error that carries none.
func ErrnoOf(err error) abi.Errno {
	if err == nil {
		return abi.OK
	}
	var errno abi.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return abi.Invalid
}

// ClassError is an error of a class that only the package knows where it comes from.
type ClassError struct {
	Class observe.Class
	Err   error
}

func (e *ClassError) Error() string { return e.Err.Error() }
func (e *ClassError) Unwrap() error { return e.Err }

// classOf returns the class of a call's failure. A limit that ended it comes before a conflict
// that the plugin met earlier.
func classOf(ctx context.Context, adj *Adjustment, err error) observe.Class {
	var known *ClassError
	switch {
	case errors.As(err, &known):
		return known.Class
	case Gone(ctx):
		return observe.ClassCallerGone
	case errors.Is(err, ErrNotLoaded):
		return observe.ClassNotLoaded
	case errors.Is(err, ErrAway):
		return observe.ClassAway
	case errors.Is(err, ErrBusy):
		return observe.ClassBusy
	case errors.Is(err, context.DeadlineExceeded):
		return observe.ClassTime
	case adj.conflict != nil:
		return observe.ClassConflict
	}
	return observe.ClassError
}
