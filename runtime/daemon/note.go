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

// notes are events of what an operator should know of a plugin with this manifest, which is
// loaded all the same.
func (l *loader) notes(d registry.Description, manifest abi.Manifest) []observe.Event {
	return append(l.kind(d).notes(d, manifest), matchNotes(d, manifest)...)
}

// say tells the notes of an active plugin, once for each version and whenever its file
// makes other ones.
func (l *loader) say(ctx context.Context, p *slot) {
	notes := l.notes(p.description, p.active.loaded.Manifest())
	if reflect.DeepEqual(p.said, notes) {
		return
	}
	p.said = notes
	for _, n := range notes {
		l.observer.Observe(ctx, n)
	}
}

// notes implements kind.
func (k modules) notes(d registry.Description, manifest abi.Manifest) []observe.Event {
	return slices.Concat(capabilityNotes(d, manifest), k.limitNotes(d, manifest), hookNotes(d, manifest))
}

// capabilityNotes say what the plugin declares and has not, and what it is granted in vain.
func capabilityNotes(d registry.Description, manifest abi.Manifest) (notes []observe.Event) {
	declared, later := manifest.Declared()
	if lacks := declared &^ granted(d); lacks != 0 {
		notes = append(notes, &observe.CapabilityMissing{Plugin: d.ID, Capabilities: lacks.Names(), Remedy: grant(d, lacks)})
	}
	if len(later) > 0 {
		notes = append(notes, &observe.CapabilityUnknown{Plugin: d.ID, Capabilities: later})
	}
	if vain := d.Grant &^ declared; vain != 0 {
		notes = append(notes, &observe.GrantUnused{Plugin: d.ID, Capabilities: vain.Names()})
	}
	return notes
}

// limitNotes say of which limit the manifest asks for more than there is.
func (k modules) limitNotes(d registry.Description, manifest abi.Manifest) (notes []observe.Event) {
	o, err := k.options(d)
	if err != nil {
		return nil // and it was not loaded
	}
	asked := manifest.Limits
	granted, _ := k.engine.Limits(o, asked)
	for _, limit := range []struct {
		of             string
		asked, granted int64
	}{
		{"fuel", asked.Fuel, granted.Fuel}, {"memory", asked.Memory, granted.Memory},
		{"time_ms", asked.TimeMS, granted.TimeMS}, {"host_calls", asked.HostCalls, granted.HostCalls},
	} {
		if limit.asked > limit.granted {
			notes = append(notes, &observe.LimitLowered{Plugin: d.ID, Limit: limit.of, Asked: limit.asked, Granted: limit.granted})
		}
	}
	return notes
}

// hookNotes say what the file names in vain.
func hookNotes(d registry.Description, manifest abi.Manifest) []observe.Event {
	vain := d.Hooks &^ manifest.HookSet()
	if vain == 0 {
		return nil
	}
	return []observe.Event{&observe.HooksUnknown{Plugin: d.ID, Hooks: vain.Names()}}
}

// matchNotes say which hooks of images wait for a pod.
func matchNotes(d registry.Description, manifest abi.Manifest) (notes []observe.Event) {
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
				notes = append(notes, &observe.MatchNeverFits{Plugin: d.ID, Hook: wanted.Hook, Key: key, MatchOf: of.whose})
			}
		}
	}
	return notes
}
