package plugin

import "fmt"

// FailurePolicy says what a plugin's failure does to the call that it hooks.
// The zero value is Ignore.
type FailurePolicy uint8

// The failure policies, in Koordinator's words.
const (
	Ignore FailurePolicy = iota // the plugin is skipped and the call goes on
	Fail                        // the call is refused, so that kubelet tries again
)

// ParseFailurePolicy reads a policy as an operator writes it. The empty string
// is Ignore; any other spelling is an error, because a misspelt "Fail" that
// silently ignores is an outage found too late.
func ParseFailurePolicy(s string) (FailurePolicy, error) {
	switch s {
	case "", "Ignore":
		return Ignore, nil
	case "Fail":
		return Fail, nil
	}
	return Ignore, fmt.Errorf("failure policy %q is neither \"Ignore\" nor \"Fail\"", s)
}

// String returns the policy as an operator writes it.
func (p FailurePolicy) String() string {
	if p == Fail {
		return "Fail"
	}
	return "Ignore"
}
