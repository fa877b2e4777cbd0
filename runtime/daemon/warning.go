package daemon

import (
	"context"
	"reflect"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// warnings are events about a plugin with this manifest that is loaded and may not do what
// its operator expects.
func (l *loader) warnings(d registry.Description, manifest abi.Manifest) []observe.Event {
	return append(l.kind(d).warnings(d, manifest), matchWarnings(d, manifest)...)
}

// warnOnce reports the warnings of an active plugin, once for each version and whenever they
// change with its file.
func (l *loader) warnOnce(ctx context.Context, p *slot) {
	warnings := l.warnings(p.description, p.active.loaded.Manifest())
	if reflect.DeepEqual(p.warned, warnings) {
		return
	}
	p.warned = warnings
	for _, n := range warnings {
		l.observer.Observe(ctx, n)
	}
}

// warnings implements kind.
func (k modules) warnings(d registry.Description, manifest abi.Manifest) []observe.Event {
	return slices.Concat(capabilityWarnings(d, manifest), k.limitWarnings(d, manifest), hookWarnings(d, manifest))
}

// capabilityWarnings name capabilities that are declared and not granted, or the reverse.
func capabilityWarnings(d registry.Description, manifest abi.Manifest) (warnings []observe.Event) {
	r := rights(d, manifest)
	if missing := r.Lacks(); missing != 0 {
		warnings = append(warnings, &observe.CapabilityMissing{Plugin: d.ID, Capabilities: missing.Names(), Remedy: r.Remedy()})
	}
	if _, later := manifest.Declared(); len(later) > 0 {
		warnings = append(warnings, &observe.CapabilityUnknown{Plugin: d.ID, Capabilities: later})
	}
	if vain := d.Grant &^ r.Declared; vain != 0 {
		warnings = append(warnings, &observe.GrantUnused{Plugin: d.ID, Capabilities: vain.Names()})
	}
	return warnings
}

// limitWarnings name the limits of which the manifest asks for more than is granted.
func (k modules) limitWarnings(d registry.Description, manifest abi.Manifest) (warnings []observe.Event) {
	wanted := manifest.Limits
	granted, _ := k.engine.Limits(k.options(d), wanted)
	for _, limit := range plugin.Limits {
		if asked, most := *limit.Of(&wanted), *limit.Of(&granted.Limits); asked > most {
			warnings = append(warnings, &observe.LimitLowered{Plugin: d.ID, Limit: limit.Key, Asked: asked, Granted: most})
		}
	}
	return warnings
}

// hookWarnings name hooks of the file that the plugin does not have.
func hookWarnings(d registry.Description, manifest abi.Manifest) []observe.Event {
	vain := d.Hooks &^ manifest.HookSet()
	if vain == 0 {
		return nil
	}
	return []observe.Event{&observe.HooksUnknown{Plugin: d.ID, Hooks: vain.Names()}}
}

// matchWarnings name hooks of images whose match needs a pod.
func matchWarnings(d registry.Description, manifest abi.Manifest) (warnings []observe.Event) {
	for _, wanted := range manifest.Hooks {
		hook, _ := abi.HookByName(wanted.Hook)
		if d.HooksNamed && !d.Hooks.Has(hook) {
			continue
		}
		for _, of := range []struct {
			whose string
			match abi.Match
		}{{"manifest", wanted.Match}, {describing(d), d.Match}} {
			if key := plugin.NeverFits(hook, of.match); key != "" {
				warnings = append(warnings, &observe.MatchNeverFits{Plugin: d.ID, Hook: wanted.Hook, Key: key, MatchOf: of.whose})
			}
		}
	}
	return warnings
}
