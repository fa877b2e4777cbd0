package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Error says what failed on which file of which group, with which value. It
// wraps Code, which is what a plugin is answered, and the cause.
type Error struct {
	Op    string    // check, find, read, write, suspend or restore
	Group string    // as the caller gave it; empty for a check
	File  string    // the cgroup v2 name; empty for a whole group
	Value string    // as the caller gave it; empty for a read
	Code  abi.Errno // abi.NotFound: the group is not there
	Err   error     // the cause
}

func (e *Error) Error() string {
	s := e.Op + " cgroup"
	if e.Group != "" {
		s += fmt.Sprintf(" %.256q", e.Group)
	}
	if e.File != "" {
		s += fmt.Sprintf(" file %.64q", e.File)
	}
	if e.Value != "" {
		s += fmt.Sprintf(" value %.64q", e.Value)
	}
	return s + ": " + e.Code.Error() + ": " + e.Err.Error()
}

// Reason is the cause with the value, for who has named the file already.
func (e *Error) Reason() string {
	if e.Value == "" || e.Code != abi.Invalid {
		return e.Err.Error()
	}
	return fmt.Sprintf("%.64q: ", e.Value) + e.Err.Error()
}

// Unwrap gives errors.Is and errors.As the code and the cause.
func (e *Error) Unwrap() []error { return []error{e.Code, e.Err} }

// cause is an error whose code is known where it arises.
type cause struct {
	code abi.Errno
	error
}

func (c *cause) Unwrap() error { return c.error }

// Reason is an error with the code that a plugin is answered.
func Reason(code abi.Errno, format string, args ...any) error {
	return &cause{code, fmt.Errorf(format, args...)}
}

// Fail returns an [Error] with the code that err has; what has no better code, such as a
// path that leaves the root, is denied. Without an error it returns nil.
func Fail(op, group, file, value string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Group: group, File: file, Value: value, Code: CodeOf(err), Err: err}
}

// CodeOf tells a plugin what an error means.
func CodeOf(err error) abi.Errno {
	var c *cause
	if errors.As(err, &c) {
		return c.code
	}
	for _, x := range codes {
		if errors.Is(err, x.err) {
			return x.code
		}
	}
	return abi.Denied
}

// codes maps what the kernel answers. ENODEV comes from a group that was
// removed after its file was opened, and from io.latency for an unknown device. EBUSY and ENOSPC are
// of a value that the group cannot have at the moment: a limit of v1 below what is in use, a cpuset
// that a child exceeds, or an empty one with processes.
var codes = []struct {
	err  error
	code abi.Errno
}{
	{fs.ErrNotExist, abi.NotFound},
	{syscall.ENOTDIR, abi.NotFound},
	{syscall.ENODEV, abi.NotFound},
	{syscall.EINVAL, abi.Invalid},
	{syscall.ERANGE, abi.Invalid},
	{syscall.EBUSY, abi.Invalid},
	{syscall.ENOSPC, abi.Invalid},
	{syscall.ENAMETOOLONG, abi.Invalid},
	{syscall.EOPNOTSUPP, abi.Unsupported},
	{syscall.EROFS, abi.Unsupported},
	{syscall.E2BIG, abi.TooLarge},
}
