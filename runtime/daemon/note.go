package daemon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// note is what an operator should know of a plugin that is loaded all the same.
type note struct {
	text  string
	attrs []any // of the line in the log
}

// String returns the note as a line for people.
func (n note) String() string {
	var b strings.Builder
	b.WriteString(n.text)
	for i := 0; i+1 < len(n.attrs); i += 2 {
		fmt.Fprintf(&b, ", %v %v", n.attrs[i], n.attrs[i+1])
	}
	return b.String()
}

// notes are those of a plugin with this manifest.
func (l *loader) notes(d registry.Description, manifest abi.Manifest) []note {
	return append(l.kind(d).notes(d, manifest), matchNotes(d, manifest)...)
}

// say logs the notes of an active plugin, once for each version and whenever its file
// makes other ones.
func (l *loader) say(p *slot) {
	notes := l.notes(p.description, p.active.loaded.Manifest())
	text := fmt.Sprint(notes)
	if p.said == text {
		return
	}
	p.said = text
	for _, n := range notes {
		l.log.Warn(n.text, append([]any{"plugin", p.id}, n.attrs...)...)
	}
}

// notes implements kind.
func (k modules) notes(d registry.Description, manifest abi.Manifest) []note {
	return slices.Concat(capabilityNotes(d, manifest), k.limitNotes(d, manifest), hookNotes(d, manifest))
}

// capabilityNotes say what the plugin declares and has not, and what it is granted in vain.
func capabilityNotes(d registry.Description, manifest abi.Manifest) (notes []note) {
	if line := lack(d, manifest); line != "" {
		notes = append(notes, note{text: line})
	}
	if _, later := manifest.Declared(); len(later) > 0 {
		notes = append(notes, note{"plugin declares capabilities that this version does not know, and has not got them", []any{"capabilities", later}})
	}
	declared, _ := manifest.Declared()
	if vain := d.Grant &^ declared; vain != 0 {
		notes = append(notes, note{"grant names capabilities that the plugin does not declare, and has no effect for them", []any{"capabilities", vain.Names()}})
	}
	return notes
}

// limitNotes say of which limit the manifest asks for more than there is.
func (k modules) limitNotes(d registry.Description, manifest abi.Manifest) (notes []note) {
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
			notes = append(notes, note{"plugin asks for more than it is granted", []any{"limit", limit.of, "asked", limit.asked, "granted", limit.granted}})
		}
	}
	return notes
}

// hookNotes say what the file names in vain.
func hookNotes(d registry.Description, manifest abi.Manifest) []note {
	vain := d.Hooks &^ manifest.HookSet()
	if vain == 0 {
		return nil
	}
	return []note{{"runtime-hooks names hooks that the plugin does not have", []any{"hooks", vain.Names()}}}
}

// matchNotes say which hooks of images wait for a pod.
func matchNotes(d registry.Description, manifest abi.Manifest) (notes []note) {
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
				notes = append(notes, note{"plugin is never asked in a hook: its match wants what no image has", []any{"hook", wanted.Hook, "key", key, "match_of", of.whose}})
			}
		}
	}
	return notes
}
