package sdk

import (
	"runtime"

	"github.com/wasmproxy/wasmproxy/abi"
)

// version is that of this SDK; the manifest tells it to people.
const version = "0.1.0"

// manifest returns the JSON that wp_manifest gives away.
func manifest() []byte {
	m := plugin.manifest
	m.SDK = "go " + version + " (" + runtime.Compiler + ")"
	return appendManifest(nil, m, plugin.handlers)
}

// appendManifest writes m as encoding/json would, which a plugin cannot afford:
// it would make the smallest plugin several hundred kilobytes larger. The hooks are
// those that are handled, each once, in the order in which they were registered.
func appendManifest(b []byte, m abi.Manifest, handlers []handler) []byte {
	w := writer{b}
	w.raw("{")
	w.text("name", m.Name)
	w.text("version", m.Version)
	w.text("description", m.Description)
	w.text("license", m.License)
	w.text("sdk", m.SDK)

	var seen abi.HookSet
	w.key("hooks")
	w.raw("[")
	for _, h := range handlers {
		if seen.Has(h.hook) {
			continue
		}
		seen |= 1 << h.hook
		w.comma()
		if len(h.match) == 0 {
			w.quote(h.hook.String())
			continue
		}
		w.raw("{")
		w.text("hook", h.hook.String())
		w.key("match")
		w.match(h.match[0])
		w.raw("}")
	}
	w.raw("]")

	w.list("capabilities", m.Capabilities)
	if l := m.Limits; l != (abi.Limits{}) {
		w.key("limits")
		w.raw("{")
		w.number("fuel", l.Fuel)
		w.number("memory", l.Memory)
		w.number("time_ms", l.TimeMS)
		w.number("host_calls", l.HostCalls)
		w.number("tick_host_calls", l.TickHostCalls)
		w.number("tick_fuel", l.TickFuel)
		w.number("tick_time_ms", l.TickTimeMS)
		w.raw("}")
	}
	w.text("state", m.State)
	w.number("tick_ms", m.TickMS)
	w.list("durable", m.Durable)
	if m.ConfigSchema != "" {
		w.key("config_schema")
		w.raw(m.ConfigSchema)
	}
	w.raw("}")
	return w.b
}

// writer writes JSON. Members of an object that are empty are left out.
type writer struct{ b []byte }

func (w *writer) raw(s string) { w.b = append(w.b, s...) }

// comma separates members and elements; nothing comes before the first.
func (w *writer) comma() {
	if last := w.b[len(w.b)-1]; last != '{' && last != '[' {
		w.raw(",")
	}
}

func (w *writer) key(key string) {
	w.comma()
	w.quote(key)
	w.raw(":")
}

func (w *writer) text(key, value string) {
	if value != "" {
		w.key(key)
		w.quote(value)
	}
}

func (w *writer) number(key string, v int64) {
	if v != 0 {
		w.key(key)
		w.raw(FormatInt(v))
	}
}

func (w *writer) list(key string, list []string) {
	if len(list) == 0 {
		return
	}
	w.key(key)
	w.raw("[")
	for _, s := range list {
		w.comma()
		w.quote(s)
	}
	w.raw("]")
}

// quote writes a string. What is not UTF-8 is left to the reader, which takes it
// for U+FFFD.
func (w *writer) quote(s string) {
	const hex = "0123456789abcdef"
	w.raw(`"`)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			w.b = append(w.b, '\\', c)
		case c < ' ':
			w.b = append(w.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			w.b = append(w.b, c)
		}
	}
	w.raw(`"`)
}
