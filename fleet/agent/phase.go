package agent

import (
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// settle is how long a proxy may take to see that a file has changed. What it says of files before may be about those.
const settle = 10 * time.Second

// phase is what the proxy makes of what the agent has delivered.
func phase(all []status.Plugin, id string, is delivered, now time.Time) (v1alpha1.Phase, string) {
	i := slices.IndexFunc(all, func(p status.Plugin) bool { return p.ID == id })
	if i < 0 {
		return v1alpha1.Waiting, "the proxy does not know the plugin yet"
	}
	p := all[i]
	active := p.Active != nil && p.Active.Settings == is.Settings
	switch {
	case p.Failure != nil && (p.Failure.Since.After(is.Time) || now.Sub(is.Time).Abs() > settle):
		return v1alpha1.Failing, p.Failure.Error + "; " + p.Failure.Meanwhile
	case p.State == status.Disabled && is.Disabled:
		return v1alpha1.Disabled, ""
	case active && !p.Probation.IsZero():
		return v1alpha1.Probation, ""
	case active:
		return v1alpha1.Healthy, ""
	}
	return v1alpha1.Waiting, "the proxy has not loaded it yet"
}
