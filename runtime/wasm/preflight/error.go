package preflight

import "fmt"

// Error is why a module was refused.
type Error struct {
	Section  string // "code"; "" if it is the module as a whole
	Function int    // index of the function, -1 if it is in no function
	Offset   int    // in bytes from the beginning of the module
	Reason   string // what is wrong and, where there is something, what its author can do
}

// Error says where, what, and what to do.
func (e *Error) Error() string {
	where := "module"
	if e.Offset == 0 {
		return where + " " + e.Reason
	}
	if e.Section != "" {
		where = e.Section + " section"
	}
	where += fmt.Sprintf(" at offset %#x: ", e.Offset)
	if e.Function >= 0 {
		where += fmt.Sprintf("function %d ", e.Function)
	}
	return where + e.Reason
}
