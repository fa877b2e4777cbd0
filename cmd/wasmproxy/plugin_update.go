package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// updateFixtures writes answers into a file as what its cases want. Everything else
// stays as it is written, but for space between tokens.
func updateFixtures(file string, cases []fixture.Case, answers []fixture.Answer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	list := bytes.HasPrefix(bytes.TrimSpace(text), []byte("["))
	raw := []json.RawMessage{text}
	if list {
		if err := json.Unmarshal(text, &raw); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	texts := make([][]byte, len(raw))
	for i := range raw {
		one := bytes.TrimSpace(raw[i])
		var keys map[string]json.RawMessage
		if err = json.Unmarshal(one, &keys); err == nil {
			if _, has := keys["want"]; !has { // it comes at the end
				one = slices.Concat(bytes.TrimSuffix(one, []byte("}")), []byte(`,"want":null}`))
			}
			texts[i], err = delivery.SetKey(one, "want", golden(cases[i], answers[i]))
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, cases[i].Name, err)
		}
	}
	text = bytes.Join(texts, []byte(","))
	if list {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	return regular.Replace(file, out.Bytes(), 0o644)
}

// golden is what a case is to want. Logs, metrics and kept values are only in it if the
// case asked for them before: an empty one is compared, nil is not. A part of the error that
// the case wants already stays: it may be all that other engines say, too.
func golden(c fixture.Case, a fixture.Answer) fixture.Want {
	want := fixture.Want{Changes: a.Changes, Reject: a.Reject}
	if a.Err != nil {
		want.Error = a.Err.Error()
		if _, own, ok := strings.Cut(want.Error, "failed: "); ok { // without what the engine says before the plugin's reason
			want.Error = own
		}
	}
	if before := c.Want; before != nil {
		want.MaxFuel = before.MaxFuel
		if before.Error != "" && a.Err != nil && strings.Contains(a.Err.Error(), before.Error) {
			want.Error = before.Error
		}
		if before.Log != nil {
			want.Log = append([]string{}, a.Log...)
		}
		if before.Metrics != nil {
			want.Metrics = maps.Collect(maps.All(a.Metrics))
		}
		if before.KV != nil {
			want.KV = maps.Collect(maps.All(a.KV))
		}
	}
	return want
}
