package wasm

import (
	"cmp"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/schema"
)

// SetLimits sets the limits that an operator gives a plugin. Those that are 0 stay. None is
// above the most that package plugin has for it.
func (o *PluginOptions) SetLimits(l abi.Limits) {
	o.Fuel = cmp.Or(l.Fuel, o.Fuel)
	o.MemoryPages = cmp.Or(pagesOf(l.Memory), o.MemoryPages)
	o.Timeout = cmp.Or(time.Duration(l.TimeMS)*time.Millisecond, o.Timeout)
	o.HostCalls = cmp.Or(int(l.HostCalls), o.HostCalls)
}

// pagesOf returns how many pages of memory a number of bytes needs.
func pagesOf(bytes int64) uint32 { return uint32((bytes + 1<<16 - 1) >> 16) }

// effectiveLimits are what a plugin's manifest asks for, as far as its operator grants it.
type effectiveLimits struct {
	manifest abi.Manifest // empty until it is known
	has      abi.CapabilitySet
	hook     allowance // of one hook
	limit    uint32    // of pages of memory
	keeps    bool      // there is one instance, which keeps its memory
}

// negotiate returns the limits of a plugin with this manifest, unless its config is not
// what its schema asks for. While the manifest is not known it is nil.
func (o *PluginOptions) negotiate(m *abi.Manifest) (effectiveLimits, error) {
	hook, _ := o.allowances()
	t := effectiveLimits{limit: o.MemoryPages, hook: hook}
	if m == nil {
		return t, nil
	}
	t.manifest = *m // also with an error, which names its hooks
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
	t.cap(m.Limits)
	return t, nil
}

// cap takes less where a manifest asks for less.
func (t *effectiveLimits) cap(l abi.Limits) {
	t.limit = min(t.limit, cmp.Or(pagesOf(l.Memory), t.limit))
	a := &t.hook
	a.fuel = min(a.fuel, cmp.Or(l.Fuel, a.fuel))
	a.hostCalls = min(a.hostCalls, cmp.Or(int(l.HostCalls), a.hostCalls))
	a.standaloneCalls = min(a.standaloneCalls, cmp.Or(int(l.HostCalls), a.standaloneCalls))
	if ms := l.TimeMS; ms > 0 && ms < a.time.Milliseconds() {
		a.time = time.Duration(ms) * time.Millisecond
	}
}

// Limits are what a plugin may use.
type Limits struct {
	abi.Limits
	LoopHostCalls int64 // host calls in Tick and Synchronize
}

func (t *effectiveLimits) limits() Limits {
	return Limits{abi.Limits{
		Fuel: t.hook.fuel, Memory: int64(t.limit) << 16, TimeMS: t.hook.time.Milliseconds(), HostCalls: int64(t.hook.hostCalls),
	}, int64(t.hook.standaloneCalls)}
}

// Limits returns what a plugin may use at most, and what of it holds for one whose
// manifest asks for these limits: the lesser of the two.
func (o PluginOptions) Limits(wanted abi.Limits) (granted, hold Limits) {
	o.MemoryPages = cmp.Or(o.MemoryPages, DefaultMemoryPages)
	t, _ := o.negotiate(nil)
	granted = t.limits()
	t.cap(wanted)
	return granted, t.limits()
}

// Limits is PluginOptions' for a plugin that the engine loads.
func (e *Engine) Limits(o PluginOptions, wanted abi.Limits) (granted, hold Limits) {
	o.Interpret = o.Interpret || e.interpret
	return o.Limits(wanted)
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
