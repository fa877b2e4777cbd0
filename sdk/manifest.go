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
	m.Hooks = hookNames(plugin.handlers)
	return appendManifest(nil, m)
}

// hookNames returns the names of the hooks that are handled, each once, in the
// order of the table.
func hookNames(handlers []handler) []string {
	var set abi.HookSet
	for _, h := range handlers {
		set |= abi.HookSetOf(h.hook)
	}
	return set.Names()
}

// appendManifest writes m as encoding/json would, which a plugin cannot afford:
// it would make the smallest plugin several hundred kilobytes larger.
func appendManifest(b []byte, m abi.Manifest) []byte {
	b = appendString(append(b, `{"name":`...), m.Name)
	b = appendString(append(b, `,"version":`...), m.Version)
	b = appendMember(b, `,"description":`, m.Description)
	b = appendMember(b, `,"license":`, m.License)
	b = appendMember(b, `,"sdk":`, m.SDK)
	b = appendStrings(append(b, `,"hooks":`...), m.Hooks)
	if len(m.Capabilities) > 0 {
		b = appendStrings(append(b, `,"capabilities":`...), m.Capabilities)
	}
	return append(b, '}')
}

// appendMember leaves a member out if it is empty.
func appendMember(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendString(append(b, key...), value)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// appendString writes a JSON string. What is not UTF-8 becomes U+FFFD, as
// ranging over a string has it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}

const hex = "0123456789abcdef"
