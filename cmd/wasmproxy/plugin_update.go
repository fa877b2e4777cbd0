package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// updateFixtures writes answers into a file as what its cases want. Everything else
// stays as it is written, but for space between tokens.
func updateFixtures(file string, cases []fixture.Case, answers []fixture.Answer) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	b = bytes.TrimSpace(b)
	var raw []json.RawMessage
	single := len(b) > 0 && b[0] == '{'
	if single {
		raw = []json.RawMessage{b}
	} else if err := json.Unmarshal(b, &raw); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for i := range raw {
		if raw[i], err = withWant(raw[i], cases[i], answers[i]); err != nil {
			return fmt.Errorf("%s: %s: %w", file, cases[i].Name, err)
		}
	}
	text := raw[0]
	if !single {
		if text, err = marshal(raw); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return regular.Replace(file, out.Bytes(), 0o644)
}

// withWant replaces the key want of a case, in its place or at the end.
func withWant(text json.RawMessage, c fixture.Case, a fixture.Answer) (json.RawMessage, error) {
	want, err := marshal(golden(c, a))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		if end := d.InputOffset(); key == "want" {
			return slices.Concat(text[:end-int64(len(value))], want, text[end:]), nil
		}
	}
	last := text[:bytes.LastIndexByte(text, '}')]
	return slices.Concat(bytes.TrimSpace(last), []byte(`,"want":`), want, []byte("}")), nil
}

// goldenWant is what a case is to want. Logs, metrics and kept values are only in it if the
// case asked for them before: an empty one is compared, nil is not.
type goldenWant struct {
	Changes map[string]any     `json:"changes,omitempty"`
	Reject  *fixture.Rejection `json:"reject,omitempty"`
	Error   string             `json:"error,omitempty"`
	Log     []string           `json:"log,omitzero"`
	Metrics map[string]int64   `json:"metrics,omitzero"`
	KV      map[string]string  `json:"kv,omitzero"`
	MaxFuel int64              `json:"max_fuel,omitempty"`
}

func golden(c fixture.Case, a fixture.Answer) goldenWant {
	g := goldenWant{Reject: a.Reject, Changes: map[string]any{}}
	if a.Err != nil {
		g.Error = a.Err.Error()
	}
	for target, v := range a.Changes {
		g.Changes[target] = goldenValue(target, v)
	}
	if w := c.Want; w != nil {
		g.MaxFuel = w.MaxFuel
		if w.Log != nil {
			g.Log = append([]string{}, a.Log...)
		}
		if w.Metrics != nil {
			g.Metrics = maps.Collect(maps.All(a.Metrics))
		}
		if w.KV != nil {
			g.KV = maps.Collect(maps.All(a.KV))
		}
	}
	return g
}

// goldenValue is a change's text as fixtures have it: numbers, lists and records as
// such, null for what is deleted. Entries of maps and cgroup files are texts.
func goldenValue(target, text string) any {
	record := strings.Contains(target, ".mounts[") || strings.Contains(target, ".devices[")
	switch {
	case text == fixture.Deleted:
		return nil
	case strings.HasSuffix(target, "]") && !record, strings.Contains(target, " cgroup file "):
		return text
	}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return text
	}
	switch v.(type) {
	case []any, map[string]any, json.Number:
		return v
	}
	return text
}

// marshal is json.Marshal that leaves <, > and & as they are, as people write them.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}
