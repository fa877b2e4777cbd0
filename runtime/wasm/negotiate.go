package wasm

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/schema"
)

// pagesOf returns how many pages of memory a number of bytes needs.
func pagesOf(bytes int64) uint32 { return uint32((bytes + 1<<16 - 1) >> 16) }

// effectiveLimits are what a plugin's manifest asks for, as far as its operator grants it.
type effectiveLimits struct {
	manifest abi.Manifest // empty until it is known
	has      abi.CapabilitySet
	hooks    allowances
	limit    uint32 // of pages of memory
	keeps    bool   // there is one instance, which keeps its memory
}

// negotiate returns the limits of a plugin with this manifest, unless it asks for more than it
// may, or its config is not what its schema asks for. While the manifest is not known it is nil,
// and an instance may have as much memory as a manifest could ask for.
func (o *PluginOptions) negotiate(m *abi.Manifest) (effectiveLimits, error) {
	if m == nil {
		hold, most, _ := o.Limits(abi.Limits{})
		return effectiveLimits{limit: pagesOf(most.Memory), hooks: o.allowances(hold)}, nil
	}
	hold, _, err := o.Limits(m.Limits)
	t := effectiveLimits{manifest: *m, limit: pagesOf(hold.Memory), hooks: o.allowances(hold)} // also with an error, which names its hooks
	if err != nil {
		return t, err
	}
	s, err := parseSchema(m.ConfigSchema)
	if err != nil {
		return t, err
	}
	if s != nil {
		if err := s.Check(o.Config); err != nil {
			return t, fmt.Errorf("config: %s", plugin.Printable(err.Error(), maxReason))
		}
	}
	t.has = plugin.RightsOf(*m, o.Granted, "").Has()
	t.keeps = cmp.Or(o.State, m.State) == abi.StateInstance
	return t, nil
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// Limits returns what a plugin may use whose manifest asks for these limits, and the most that
// it may ask for. The error names each limit that it exceeds.
func (o PluginOptions) Limits(asked abi.Limits) (hold, most abi.Limits, err error) {
	given, usual := o.Set, usualLimits // what the operator set for the plugin, and what there is without
	given.TimeMS, given.TickTimeMS = milliseconds(o.Timeout), milliseconds(o.TickTimeout)
	if o.Interpret {
		usual.Fuel, usual.TickFuel = InterpretedFuel, InterpretedFuel
	}
	var errs []error
	for _, l := range plugin.Limits {
		set := l.Value(&given)
		top := cmp.Or(set, max(*l.Of(&usual), *l.Of(&o.Max)))
		if want := *l.Of(&asked); want > top {
			errs = append(errs, l.Overrun(want, top, set != 0))
		}
		*l.Of(&most), *l.Of(&hold) = top, min(cmp.Or(l.Value(&asked), set, *l.Of(&usual)), top)
	}
	return hold, most, errors.Join(errs...)
}

// Limits is PluginOptions' for a plugin that the engine loads.
func (e *Engine) Limits(o PluginOptions, asked abi.Limits) (hold, most abi.Limits, err error) {
	o.Interpret = o.Interpret || e.interpret
	return o.Limits(asked)
}

// parseSchema reads a manifest's config_schema. It is nil if there is none.
func parseSchema(text string) (*schema.Schema, error) {
	if text == "" {
		return nil, nil
	}
	s, err := schema.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("manifest: config_schema: %s", plugin.Printable(err.Error(), maxReason))
	}
	return s, nil
}
