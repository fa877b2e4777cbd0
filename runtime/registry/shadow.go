package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// shadowKey is the key of a plugin's JSON that describes another version, which is called beside the plugin and changes
// nothing. What is wrong with it is the Problem of that version alone.
const shadowKey = "shadow"

// shadowKeys are those of a shadow. All that the file says of other things, such as match, holds for both versions.
var shadowKeys = slices.Concat(moduleKeys, []key{
	{"wasm-module", text(aString, readModuleName)},
	{"timeout", text(aTimeout, readTimeout(hookTimeout))},
	{"sample", readSample},
})

// readShadow reads the key shadow.
func readShadow(s *settings, v json.RawMessage) error {
	var file map[string]json.RawMessage
	of, err := settings{}, json.Unmarshal(v, &file)
	if err != nil {
		err = fmt.Errorf(`%.64s is not an object such as {"wasm-module": ".modules/next.wasm"}`, compact(v))
	} else {
		of, err = readKnown(shadowKeys, file)
	}
	if err == nil && of.Module == "" {
		err = errors.New("wasm-module: is missing")
	}
	if of.Sample == 0 {
		of.Sample = 100
	}
	of.Problem, s.shadow = err, &of
	return nil
}

func readSample(s *settings, v json.RawMessage) (err error) {
	if s.Sample, err = decode[int](v, "a whole number of percent"); err == nil && (s.Sample < 1 || s.Sample > 100) {
		return fmt.Errorf("%d is not between 1 and 100 percent", s.Sample)
	}
	return err
}

// findShadow looks at the module of the shadow, and adds the shadow to the description of its plugin.
func (s *settings) findShadow(json string, sum func(path string) (string, error)) {
	if s.shadow == nil {
		return
	}
	of := &s.shadow.Description
	of.ID, of.File, of.Match = s.ID, s.File, s.Match
	path, err := of.modulePath(), of.Problem
	switch {
	case err != nil:
	case s.DryRun:
		err = errors.New("the plugin is in dry-run and changes nothing, so that there is nothing to compare")
	case path != s.modulePath() && !strings.HasPrefix(of.Module, Modules+"/"): // it would be a plugin by itself
		name := plugin.Name(of.Module)
		err = fmt.Errorf("wasm-module: %s is not the plugin's own module: put it into %s, and name it %[2]s/%[1]s", name, Modules)
	default:
		of.Digest, err = sum(path)
		switch want := s.shadow.sha256; {
		case vanished(path, err):
			err = fmt.Errorf("wasm-module: there is no %s beside the file", plugin.Name(of.Module))
		case err != nil:
			err = fmt.Errorf("wasm-module: %s %w", plugin.Name(of.Module), err)
		case want != "" && want != of.Digest:
			err = anotherDigest(want, of.Module, of.Digest)
		}
	}
	if err != nil {
		*of = Description{ID: s.ID, File: s.File, Module: of.Module, Problem: &fileError{json, fmt.Errorf("%s: %w", shadowKey, err)}}
	}
	s.Shadow = of
}

// withoutShadow returns a JSON object as it was before a shadow was added to it: without that key, its value, and the comma
// between it and the key before or after.
func withoutShadow(b []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil { // of the opening brace
		return b
	}
	first, before := true, d.InputOffset()
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return b
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return b
		}
		after := d.InputOffset()
		if name == shadowKey {
			rest := b[after:]
			if first && d.More() {
				_, rest, _ = bytes.Cut(rest, []byte(","))
				if b[before] == '"' { // the space after the comma is of the shadow, too
					rest = bytes.TrimLeft(rest, " ")
				}
			}
			return withoutShadow(slices.Concat(b[:before], rest)) // a key may come twice
		}
		first, before = false, after
	}
	return b
}
