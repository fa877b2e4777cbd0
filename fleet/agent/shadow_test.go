package agent

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func TestJudgeShadow(t *testing.T) {
	outcomes := func(same, different, refused, failed uint64) map[string]uint64 {
		return map[string]uint64{"same": same, "different": different, "refused": refused, "failed": failed}
	}
	for _, test := range []struct {
		name        string
		shadow      *status.Shadow
		want        v1alpha1.Phase
		differences int64
	}{
		{"not loaded yet", nil, v1alpha1.Waiting, 0},
		{"that of before", &status.Shadow{Digest: "other", State: "active"}, v1alpha1.Waiting, 0},
		{"loading", &status.Shadow{Digest: "ours", State: "loading"}, v1alpha1.Waiting, 0},
		{"does not load", &status.Shadow{Digest: "ours", State: "failed", Reason: "no hook"}, v1alpha1.Failing, 0},
		{"differs in each call", &status.Shadow{Digest: "ours", State: "active", Outcomes: outcomes(0, 70, 30, 0)}, v1alpha1.Healthy, 100},
		{"fails in a few calls", &status.Shadow{Digest: "ours", State: "active", Outcomes: outcomes(10, 0, 0, 9)}, v1alpha1.Healthy, 0},
		{"fails in 5 %", &status.Shadow{Digest: "ours", State: "active", Outcomes: outcomes(95, 0, 0, 5)}, v1alpha1.Healthy, 0},
		{"fails in 6 %", &status.Shadow{Digest: "ours", State: "active", Outcomes: outcomes(94, 0, 0, 6)}, v1alpha1.Failing, 0},
		{"has an open breaker", &status.Shadow{Digest: "ours", State: "active", Breaker: "open"}, v1alpha1.Failing, 0},
	} {
		r := &v1alpha1.ShadowReport{}
		judgeShadow([]status.Plugin{{ID: "50-p", Shadow: test.shadow}}, "50-p", "ours", r)
		if r.Phase != test.want || r.Differences != test.differences || (r.Message == "") != (test.want == v1alpha1.Healthy) {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestNewsOfShadows are a change of the phase, and ten times as many differences.
func TestNewsOfShadows(t *testing.T) {
	shadow := func(n int64) *v1alpha1.ShadowReport {
		return &v1alpha1.ShadowReport{Revision: "r2", Phase: v1alpha1.Healthy, Differences: n}
	}
	for _, test := range []struct {
		a, b *v1alpha1.ShadowReport
		same bool
	}{
		{nil, nil, true}, {nil, shadow(0), false}, {shadow(0), shadow(1), false}, {shadow(1), shadow(9), true}, {shadow(9), shadow(10), false},
		{shadow(1), &v1alpha1.ShadowReport{Revision: "r2", Phase: v1alpha1.Failing, Differences: 1}, false},
	} {
		if got := same(v1alpha1.PluginReport{Shadow: test.a}, v1alpha1.PluginReport{Shadow: test.b}); got != test.same {
			t.Errorf("%+v and %+v: %v", test.a, test.b, got)
		}
	}
}
