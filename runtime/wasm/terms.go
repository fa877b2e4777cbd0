package wasm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/preflight"
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

// provisional are the limits while the manifest is not known.
func (o *PluginOptions) provisional() effectiveLimits {
	hook, _ := o.allowances(o.Interpret)
	return effectiveLimits{limit: o.MemoryPages, hook: hook}
}

// negotiate returns the limits of a plugin with this manifest, unless its config is not
// what its schema asks for. It runs nothing of the plugin.
func (o *PluginOptions) negotiate(m abi.Manifest) (effectiveLimits, error) {
	t := o.provisional()
	t.manifest = m
	if err := checkConfig(m.ConfigSchema, o.Config); err != nil {
		return t, err
	}
	t.has = plugin.RightsOf(m, o.Granted, "").Has()
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
	a.apartCalls = min(a.apartCalls, cmp.Or(int(l.HostCalls), a.apartCalls))
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
	}, int64(t.hook.apartCalls)}
}

// Limits returns what a plugin may use at most, and what of it holds for one whose
// manifest asks for these limits: the lesser of the two.
func (o PluginOptions) Limits(asked abi.Limits) (granted, hold Limits) {
	o.MemoryPages = cmp.Or(o.MemoryPages, DefaultMemoryPages)
	t := o.provisional()
	granted = t.limits()
	t.cap(asked)
	return granted, t.limits()
}

// Limits is PluginOptions' for a plugin that the engine loads.
func (e *Engine) Limits(o PluginOptions, asked abi.Limits) (granted, hold Limits) {
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

func checkConfig(text string, config []byte) error {
	s, err := parseSchema(text)
	if err != nil || s == nil {
		return err
	}
	if err := s.Check(config); err != nil {
		return fmt.Errorf("config: %s", plugin.Printable(err.Error(), maxReason))
	}
	return nil
}

// negotiateStatic returns the limits that the manifest of a custom section leads to, or
// the provisional ones if it has none.
func (o *PluginOptions) negotiateStatic(m *preflight.Outline) (effectiveLimits, error) {
	if m.Manifest == nil {
		return o.provisional(), nil
	}
	manifest, err := parseManifest(m.Manifest)
	if err != nil {
		return effectiveLimits{}, err
	}
	return o.negotiate(manifest)
}

// readManifest asks the plugin's first instance for the manifest, if no custom section
// has it, and negotiates the limits. Every other instance is asked too, so that all begin
// alike; what they answer is passed over.
func (p *guests) readManifest(ctx context.Context, g *guest) error {
	if p.static {
		return nil
	}
	b, err := g.manifest(ctx)
	if err != nil || p.manifest.Name != "" {
		return err
	}
	m, err := parseManifest(b)
	if err != nil {
		return err
	}
	if p.effectiveLimits, err = p.options.negotiate(m); err != nil {
		return err
	}
	g.allowance = p.hook
	return g.memory.cap(int64(p.limit) << 16)
}
