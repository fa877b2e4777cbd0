package conformance

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Verdict is what a test says of a host.
type Verdict struct {
	ID          int
	Name, Group string
	Unsupported bool  // which the host says itself
	Err         error // what was expected and what was given; nil if the test passed
}

func (t *Test) verdict(o Outcome) Verdict {
	v := Verdict{ID: t.ID, Name: t.Name, Group: t.group()}
	if o.Result == Unsupported && v.Group == group.Core {
		v.Err = fmt.Errorf("unsupported: %s; every host serves the core", o.Reason)
		return v
	}
	if o.Result == Unsupported {
		v.Unsupported = true
		return v
	}

	want, a := *t.Case.Want, fixture.Answer{Changes: o.Changes, Log: o.Log, KV: o.KV, Metrics: o.Metrics}
	switch o.Result {
	case Failed:
		a.Err = fmt.Errorf("failed: %s; want no failure", o.Reason)
	case Refused:
		a.Reject = &fixture.Rejection{Code: o.Code, Reason: o.Reason}
	}
	if want.Error != "" { // a host has words of its own, beside those of the guest
		want.Error = "failed"
	}
	if want.KV != nil && a.KV == nil {
		a.KV = map[string]string{}
	}
	v.Err = want.Compare(a)
	for _, reason := range t.says {
		if o.Result == Failed && !strings.Contains(o.Reason, reason) {
			v.Err = errors.Join(v.Err, fmt.Errorf("failed with %q, want the guest's %q in it", o.Reason, reason))
		}
	}
	return v
}

// Report is what all tests say, in their order.
type Report []Verdict

// Count is how the tests of a group ended.
type Count struct {
	Group                       string
	Passed, Failed, Unsupported int
}

// Counts returns the counts of each group, in the order of the table.
func (r Report) Counts() []Count {
	counts := make([]Count, len(group.All))
	for i, g := range group.All {
		counts[i].Group = g.Name
		for _, v := range r {
			switch {
			case v.Group != g.Name:
			case v.Unsupported:
				counts[i].Unsupported++
			case v.Err != nil:
				counts[i].Failed++
			default:
				counts[i].Passed++
			}
		}
	}
	return counts
}

// Print writes each test that failed, and a line for each group.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	for _, v := range r {
		if v.Err != nil {
			fmt.Fprintf(&b, "FAIL  %s %d: %s\n      %s\n", v.Group, v.ID, v.Name, strings.ReplaceAll(v.Err.Error(), "\n", "\n      "))
		}
	}
	fmt.Fprintf(&b, "%-12s %6s %6s %11s\n", "group", "passed", "failed", "unsupported")
	for _, c := range r.Counts() {
		fmt.Fprintf(&b, "%-12s %6d %6d %11d\n", c.Group, c.Passed, c.Failed, c.Unsupported)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
