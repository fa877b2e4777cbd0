package plugin

import (
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// A guest that is refused something gets a number. This file keeps the reasons, for the
// error that the guest may end with.

// maxRefusals is how many reasons are kept of one call: the first, and the last.
const maxRefusals = 4

// maxRefused is how many bytes of them are told.
const maxRefused = 2 << 10

// Refused notes that the plugin was refused something. The methods that ask for changes do
// so by themselves.
func (a *Adjustment) Refused(e *WriteError) {
	if len(a.refusals) == maxRefusals {
		a.refusals = a.refusals[:maxRefusals-1]
	}
	a.refusals, a.untaken = append(a.refusals, e), true
}

// Refusal returns the last refusal of a change since the last call of Refusal, nil if there
// was none.
func (a *Adjustment) Refusal() *WriteError {
	if !a.untaken {
		return nil
	}
	a.untaken = false
	return a.refusals[len(a.refusals)-1]
}

// WhyRefused returns what a plugin failed with, and adds the reasons for the refusals that had the number
// with which the plugin failed.
func (a *Adjustment) WhyRefused(failure string, errno abi.Errno) string {
	var reasons []string
	for _, e := range a.refusals {
		if text := e.Error(); e.Errno == errno && !slices.Contains(reasons, text) {
			reasons = append(reasons, text)
		}
	}
	if len(reasons) == 0 {
		return failure
	}
	return failure + "; the host refused " + a.Sanitize(strings.Join(reasons, "; "), maxRefused)
}

// keep notes a refusal, and returns it. The chain makes the event of a conflict.
func (a *Adjustment) keep(err error) error {
	if e, ok := err.(*WriteError); ok {
		a.Refused(e)
	}
	return err
}
