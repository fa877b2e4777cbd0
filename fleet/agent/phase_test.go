package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func TestPhase(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ours, other := &status.Version{Settings: "ours"}, &status.Version{Settings: "other"}
	for _, test := range []struct {
		name string
		of   status.Plugin
		age  time.Duration // of the delivery
		want v1alpha1.Phase
	}{
		{"active", status.Plugin{State: status.Active, Active: ours}, time.Hour, v1alpha1.Healthy},
		{"on probation", status.Plugin{State: status.Active, Active: ours, Probation: now.Add(time.Minute)}, time.Hour, v1alpha1.Probation},
		{"the version before is active", status.Plugin{State: status.Active, Active: other, Pending: ours}, time.Hour, v1alpha1.Waiting},
		{"it went back", status.Plugin{State: status.Active, Active: other, Failure: &status.FileFailure{Since: now}}, time.Minute, v1alpha1.Failing},
		{"a failure of files before", status.Plugin{State: status.Active, Active: other, Failure: &status.FileFailure{Since: now.Add(-time.Hour)}}, time.Second, v1alpha1.Waiting},
		{"a failure that stays", status.Plugin{State: status.Active, Active: other, Failure: &status.FileFailure{Since: now.Add(-time.Hour)}}, time.Minute, v1alpha1.Failing},
		{"it went back after the clock was set back", status.Plugin{State: status.Active, Active: other, Failure: &status.FileFailure{Since: now}}, -24 * time.Hour, v1alpha1.Failing},
		{"disabled by what was there before", status.Plugin{State: status.Disabled}, time.Second, v1alpha1.Waiting},
	} {
		test.of.ID = "50-p"
		got, _ := phase([]status.Plugin{{ID: "10-other"}, test.of}, "50-p", delivered{Settings: "ours", Time: now.Add(-test.age)}, now)
		if got != test.want {
			t.Errorf("%s: %s, not %s", test.name, got, test.want)
		}
	}
	disabled := []status.Plugin{{ID: "50-p", State: status.Disabled}}
	if got, _ := phase(disabled, "50-p", delivered{Disabled: true}, now); got != v1alpha1.Disabled {
		t.Errorf("a plugin that is to be disabled is %s", got)
	}
	if got, _ := phase(nil, "50-p", delivered{}, now); got != v1alpha1.Waiting {
		t.Errorf("a plugin that the proxy does not know is %s", got)
	}
}

// TestCut: a message comes back from the API server as it was sent. Else it would be news, and be sent again and again.
func TestCut(t *testing.T) {
	sent := v1alpha1.Next{Message: cut("x" + strings.Repeat("é", 300))}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.Next
	if err := json.Unmarshal(text, &back); err != nil || back != sent {
		t.Errorf("%q comes back as %q, error %v", sent.Message, back.Message, err)
	}
}
