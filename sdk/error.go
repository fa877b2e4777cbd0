package sdk

import "github.com/wasmproxy/wasmproxy/abi"

// Errno is the host's reason for refusing something. It is an error, and what
// errors.Is finds in the errors of this package.
type Errno = abi.Errno

// The host's reasons.
const (
	ErrNotFound    = abi.NotFound
	ErrUnsupported = abi.Unsupported // this node or kernel cannot do it, such as cgroup v2's files on v1, or cannot tell
	ErrDenied      = abi.Denied      // not this plugin's to read or write
	ErrInvalid     = abi.Invalid     // malformed or out of range
	ErrTooLarge    = abi.TooLarge
	ErrLimit       = abi.Limit    // too many changes in one call
	ErrReadOnly    = abi.ReadOnly // not writable in this hook
	ErrConflict    = abi.Conflict // an earlier plugin set it to another value
)

// Error is the host's answer to a method that it refused.
//
// An Error fails the hook, whether or not the plugin looks at it: none of the
// plugin's changes happen, and the operator's failure policy says what becomes
// of the call. A plugin that can do without takes it back with [Handled].
type Error struct {
	Op      string // the method, such as "SetCPUQuota"
	Key     string // its key or file, if it has one
	Errno   Errno
	read    bool // a method that returns no error
	handled bool
}

// Error names the method, its key and the reason.
func (e *Error) Error() string {
	if e.Key == "" {
		return e.Op + ": " + e.Errno.Error()
	}
	return e.Op + " " + e.Key + ": " + e.Errno.Error()
}

// Unwrap returns e.Errno.
func (e *Error) Unwrap() error { return e.Errno }

// Handled reports whether err is an *[Error] for this reason, and if it is, err
// no longer fails the hook: the plugin has dealt with it.
//
//	err := c.Resources().SetUnified("memory.high", "268435456")
//	if sdk.Handled(err, sdk.ErrUnsupported) {
//		return nil // cgroup v1: go on without
//	}
//	return err
//
// An err of [ReadError] stands for all reads before that failed for this reason.
// With any other err, nil among them, it changes nothing and reports false.
func Handled(err error, reason Errno) bool {
	e := asError(err)
	if e == nil || e.Errno != reason {
		return false
	}
	e.handled = true
	if e.read {
		for _, other := range refused {
			other.handled = other.handled || other.read && other.Errno == reason
		}
	}
	return true
}

// ReadError returns the *[Error] of the first read of the call that failed and was not [Handled],
// nil if there is none. A read is a method that returns a value and no error. What a pod or container
// does not have is no failure.
//
//	for _, c := range sdk.Containers() {
//		quota := c.Resources().CPUQuota()
//		if sdk.Handled(sdk.ReadError(), sdk.ErrUnsupported) {
//			continue // the runtime does not report this container's resources
//		}
func ReadError() error {
	for _, e := range refused {
		if e.read && !e.handled {
			return e
		}
	}
	return nil
}

// asError finds the *Error in err's chain. Package errors would do it by reflection.
func asError(err error) *Error {
	for err != nil {
		if e, ok := err.(*Error); ok {
			return e
		}
		wrapper, ok := err.(interface{ Unwrap() error })
		if !ok {
			return nil
		}
		err = wrapper.Unwrap()
	}
	return nil
}

// refused holds every Error of the call that runs.
var refused []*Error

// check turns a host function's result into an error and remembers it.
func check(op, key string, result int32) error {
	if result >= 0 {
		return nil
	}
	return refuse(op, key, result, false)
}

// refuse is the part of check that few calls come to. In line it would cost all of them.
//
//go:noinline
func refuse(op, key string, result int32, read bool) error {
	e := &Error{Op: op, Key: key, Errno: Errno(result), read: read}
	refused = append(refused, e)
	return e
}

// unhandled returns the first Error of the call that the plugin did not deal with.
func unhandled() error {
	for _, e := range refused {
		if !e.handled {
			return e
		}
	}
	return nil
}
