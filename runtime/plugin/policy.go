package plugin

// FailurePolicy says what a plugin's failure does to the call that it hooks.
// The zero value is Ignore.
type FailurePolicy uint8

// The failure policies, in Koordinator's words.
const (
	Ignore FailurePolicy = iota // the plugin is skipped and the call goes on
	Fail                        // the call is refused, so that kubelet tries again
)

// String returns the policy as an operator writes it.
func (p FailurePolicy) String() string {
	if p == Fail {
		return "Fail"
	}
	return "Ignore"
}
