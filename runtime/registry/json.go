package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// parseHookserver reads a file of hookserver.d as Koordinator does: the cases of
// keys do not matter, and unknown keys are ignored. A file that
// names a module is read by the rules of the plugin directory.
// With an error come the settings that could be read.
func parseHookserver(b []byte) (settings, error) {
	var file struct {
		Endpoint json.RawMessage `json:"remote-endpoint"`
		Policy   json.RawMessage `json:"failure-policy"`
		Hooks    json.RawMessage `json:"runtime-hooks"`
		Timeout  json.RawMessage `json:"timeout"`
		Match    json.RawMessage `json:"match"`
		Order    json.RawMessage `json:"order"`
		Module   json.RawMessage `json:"wasm-module"`
	}
	if err := parse(b, &file); err != nil {
		return settings{}, err
	}
	if given(file.Module) {
		return parsePlugin(b)
	}
	return read(hookserverKeys, map[string]json.RawMessage{
		"remote-endpoint": file.Endpoint, "failure-policy": file.Policy, "runtime-hooks": file.Hooks,
		"timeout": file.Timeout, "match": file.Match, "order": file.Order,
	})
}

// parsePlugin reads a JSON file of the plugin directory. Every key must be known.
func parsePlugin(b []byte) (settings, error) {
	var file map[string]json.RawMessage
	if err := parse(b, &file); err != nil {
		return settings{}, err
	}
	return readKnown(pluginKeys, file)
}

// readKnown is read of an object that may have no other keys.
func readKnown(keys []key, file map[string]json.RawMessage) (settings, error) {
	s, err := read(keys, file)
	var known []string
	for _, k := range keys {
		known = append(known, k.name)
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if !slices.Contains(known, name) && err == nil {
			err = unknown("key", name, known)
		}
	}
	return s, err
}

// read reads all keys that it can, and returns the first error.
func read(keys []key, file map[string]json.RawMessage) (s settings, first error) {
	for _, k := range keys {
		v := file[k.name]
		if !given(v) {
			continue
		}
		s.keys = append(s.keys, k.name)
		if err := k.read(&s, v); err != nil && first == nil {
			first = fmt.Errorf("%s: %w", k.name, err)
		}
	}
	s.Interpret, s.HooksNamed = s.engine == engineInterpreter, s.hooks != nil
	if s.DryRun { // a plugin that changes nothing holds up nothing either
		s.Policy = plugin.Ignore
	}
	return s, first
}

// given reports whether a key has a value: null is no value.
func given(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// parse reads a JSON object.
func parse(b []byte, into any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return errors.New("is empty")
	}
	err := json.Unmarshal(b, into)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		before := b[:min(max(syntax.Offset-1, 0), int64(len(b)))] // the offset is after the byte at which the parser stopped
		start := bytes.LastIndexByte(before, '\n') + 1
		return fmt.Errorf("is not JSON: line %d, column %d: %w", bytes.Count(before, []byte("\n"))+1, len(before)-start+1, err)
	case errors.As(err, &mismatch):
		return fmt.Errorf("is a JSON %s, not an object", mismatch.Value)
	case err != nil:
		return err
	}
	return nil
}

// decode reads a value of the kind that want names.
func decode[T any](v json.RawMessage, want string) (T, error) {
	var value T
	if err := json.Unmarshal(v, &value); err != nil {
		return value, fmt.Errorf("%.64s is not %s", compact(v), want)
	}
	return value, nil
}

// compact returns valid JSON without the space between its tokens.
func compact(v json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, v); err != nil {
		return v
	}
	return b.Bytes()
}
