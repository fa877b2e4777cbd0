package loader

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Warnings are events about a plugin with this manifest that is loaded and may not do what
// its operator expects. Those of every kind are hooks that the mode does not have, and hooks of images
// whose match needs a pod. Koordinator's files of hook servers may name hooks that the server does not have yet: later versions
// of it have.
func (l *Loader) Warnings(d registry.Description, manifest abi.Manifest) (warnings []observe.Event) {
	hooks := manifest.HookSet()
	if !d.IsHookServer() {
		r := d.Rights(manifest)
		if missing := r.Lacks(); missing != 0 {
			warnings = append(warnings, &observe.CapabilityMissing{Plugin: d.ID, Capabilities: missing.Names(), Remedy: r.Remedy()})
		}
		if _, later := manifest.Declared(); len(later) > 0 {
			warnings = append(warnings, &observe.CapabilityUnknown{Plugin: d.ID, Capabilities: later})
		}
		if vain := d.Grant &^ r.Declared; vain != 0 {
			warnings = append(warnings, &observe.GrantUnused{Plugin: d.ID, Capabilities: vain.Names()})
		}
		if vain := d.Hooks &^ hooks; vain != 0 {
			warnings = append(warnings, &observe.HooksUnknown{Plugin: d.ID, Hooks: vain.Names()})
		}
	}
	if d.HooksNamed {
		hooks &= d.Hooks
	}
	if never := hooks & l.options.Uncalled; never != 0 {
		warnings = append(warnings, &observe.HooksNotInDocker{Plugin: d.ID, Hooks: never.Names()})
	}
	for _, wanted := range manifest.Hooks {
		hook, _ := abi.HookByName(wanted.Hook)
		if !hooks.Has(hook) {
			continue
		}
		for _, of := range []struct {
			whose string
			match abi.Match
		}{{"manifest", wanted.Match}, {d.JSONName(), d.Match}} {
			if key := plugin.NeverFits(hook, of.match); key != "" {
				warnings = append(warnings, &observe.MatchNeverFits{Plugin: d.ID, Hook: wanted.Hook, Key: key, MatchOf: of.whose})
			}
		}
	}
	return warnings
}
