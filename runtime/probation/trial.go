package probation

import (
	"fmt"
	"time"
)

// What a version may do in its probation.
const (
	maxStarts    = 2  // starts of the proxy after one that did not stop in order
	minCalls     = 20 // of which a share is taken
	failingShare = 20 // one call in so many may fail: 5 %
)

// Counts are what a plugin has done since the proxy was started, or since it was removed or switched off. They grow.
type Counts struct {
	Calls         uint64 `json:"calls"`
	Failures      uint64 `json:"failures"`      // of these calls
	WriteFailures uint64 `json:"writeFailures"` // of its values, to cgroup files
	Fights        uint64 `json:"fights"`        // cgroup files that were left alone since something else overwrites them
	Openings      uint64 `json:"openings"`      // of its circuit breaker
	Refusable     uint64 `json:"refusable"`     // calls that it could refuse
	Rejections    uint64 `json:"rejections"`    // of these
}

func (c Counts) plus(o Counts) Counts {
	return Counts{
		c.Calls + o.Calls, c.Failures + o.Failures, c.WriteFailures + o.WriteFailures, c.Fights + o.Fights, c.Openings + o.Openings,
		c.Refusable + o.Refusable, c.Rejections + o.Rejections,
	}
}

func (c Counts) less(o Counts) Counts {
	return Counts{
		c.Calls - o.Calls, c.Failures - o.Failures, c.WriteFailures - o.WriteFailures, c.Fights - o.Fights, c.Openings - o.Openings,
		c.Refusable - o.Refusable, c.Rejections - o.Rejections,
	}
}

// Terms are those of a probation.
type Terms struct {
	For        time.Duration `json:"for"`                  // nanoseconds, from when the version is active first
	MaxRefused *int          `json:"maxRefused,omitempty"` // percent of at least 20 calls that it could refuse; nil: that is not judged
}

// Trial is the probation of one version of a plugin.
type Trial struct {
	Generation string `json:"generation"` // of the plugin's files
	Terms
	Ends    time.Time `json:"ends,omitzero"`
	Before  Counts    `json:"before"` // of the version before
	Starts  int       `json:"starts"` // of the proxy since it stopped in order last
	Passed  bool      `json:"passed,omitempty"`
	Failure *Failure  `json:"failure,omitempty"` // nil unless the node has gone back

	from Counts // when the version became active first in this process
}

// Failure says why a version has failed its probation.
type Failure struct {
	Reason string    `json:"reason"` // one printable line
	At     time.Time `json:"at"`
}

// Open reports whether the version is on probation, be it active or yet to be loaded.
func (t *Trial) Open() bool { return !t.Passed && t.Failure == nil }

// Judge says why the version fails by these counts; "" if it does not.
func (t *Trial) Judge(now Counts) string {
	calls, failures := now.Calls-t.from.Calls, now.Failures-t.from.Failures
	written, fought := now.WriteFailures-t.from.WriteFailures, now.Fights-t.from.Fights
	refusable, refused := now.Refusable-t.from.Refusable, now.Rejections-t.from.Rejections
	many := calls >= minCalls && failures*failingShare > calls
	switch {
	case now.Openings > t.from.Openings:
		return "its circuit breaker opened"
	case many && failures*max(t.Before.Calls, 1) > t.Before.Failures*calls:
		return fmt.Sprintf("%d of its %d calls failed; %d of %d failed before", failures, calls, t.Before.Failures, t.Before.Calls)
	case refusable >= minCalls && t.MaxRefused != nil && refused*100 > uint64(*t.MaxRefused)*refusable:
		return fmt.Sprintf("it refused %d of the %d calls that it could refuse, and may refuse %d %%", refused, refusable, *t.MaxRefused)
	case written > 0 && t.Before.WriteFailures == 0:
		return fmt.Sprintf("%d of its writes to cgroup files failed, and none did before", written)
	case fought > 0 && t.Before.Fights == 0:
		return fmt.Sprintf("%d of its cgroup files are overwritten by something else, and none was before", fought)
	}
	return ""
}
