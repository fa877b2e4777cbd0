package abi

// Errno is the result of a host function that failed. It is negative on the
// wire; every other result is 0 or a length.
type Errno int32

// The errors of the ABI. OK is not an error; a host function never returns it as one.
const (
	OK          Errno = 0
	NotFound    Errno = -1 // no such object, field, key or file
	Unsupported Errno = -2 // this node, kernel or host cannot do it
	Denied      Errno = -3 // not declared by the plugin, not granted by the operator, or not for plugins to write
	Invalid     Errno = -4 // malformed, out of range, or not of the field's type
	TooLarge    Errno = -5 // the value exceeds a limit
	Limit       Errno = -6 // too many operations in this call
	ReadOnly    Errno = -7 // not writable in this hook
	Conflict    Errno = -8 // an earlier plugin set it to another value
)

var errnoNames = [...]string{
	"ok", "not found", "unsupported", "denied", "invalid", "too large", "limit reached", "read-only here", "conflict",
}

// Error returns the error's name, such as "read-only here".
func (e Errno) Error() string {
	if e > 0 || int(-e) >= len(errnoNames) {
		return "unknown error"
	}
	return errnoNames[-e]
}

var errnoCapitals = [...]string{
	"OK", "NOT_FOUND", "UNSUPPORTED", "DENIED", "INVALID", "TOO_LARGE", "LIMIT", "READ_ONLY", "CONFLICT",
}

// ErrnoName returns an error's name in capitals, such as READ_ONLY, as ABI.md has it in its text, and fixtures and recordings
// write it; "" for no error of the ABI.
func ErrnoName(e Errno) string {
	if e > 0 || int(-e) >= len(errnoCapitals) {
		return ""
	}
	return errnoCapitals[-e]
}

// ErrnoByName finds an error by its name in capitals. OK is none.
func ErrnoByName(name string) (Errno, bool) {
	for e := NotFound; e >= Conflict; e-- {
		if ErrnoName(e) == name {
			return e, true
		}
	}
	return OK, false
}
