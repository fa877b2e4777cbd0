package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// updateFixtures writes answers into a file as what its cases want. Everything else stays as it is written, and so does
// what a case wants already, the file's owner and mode, and a link to it.
func updateFixtures(file string, cases []fixture.Case, answers []fixture.Answer) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	all, depth, err := places(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var out []byte
	written := 0 // of text
	for i, at := range all {
		if cases[i].Want != nil { // a case that is as it would be after the update stays, and so does its limit of fuel
			want := *cases[i].Want
			want.MaxFuel = 0
			if want.Compare(answers[i]) == nil {
				continue
			}
		}
		updated, err := wantWriter{text, at[0], at[1], depth}.write(golden(cases[i], answers[i]))
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, cases[i].Name, err)
		}
		out = slices.Concat(out, text[written:at[0]], updated)
		written = at[1]
	}
	if written == 0 {
		return nil
	}
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	return regular.Rewrite(target, append(out, text[written:]...), 0o644)
}

// places returns where each case begins and ends in a file of fixtures, which has a list of them or one, and how deep in the
// file the keys of a case are.
func places(text []byte) (all [][2]int, depth int, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	depth = 1
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		depth = 2
		if _, err := d.Token(); err != nil {
			return nil, 0, err
		}
	}
	for d.More() {
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return nil, 0, err
		}
		end := int(d.InputOffset())
		all = append(all, [2]int{end - len(one), end})
	}
	return all, depth, nil
}

// wantWriter writes what a case wants in the way in which the case is written.
type wantWriter struct {
	text      []byte // of the file
	from, end int    // of the case
	depth     int    // of the keys of the case
}

// write returns the text of the case.
func (w wantWriter) write(want fixture.Want) ([]byte, error) {
	of := w.text[w.from:w.end]
	_, from, end, err := delivery.Value(of, "want")
	if err != nil {
		return nil, err
	}
	body := bytes.TrimRight(bytes.TrimSuffix(of, []byte("}")), " \t\r\n")
	tail := of[len(body):] // the brace, and the space before it
	lines := bytes.Contains(tail, []byte("\n"))
	if end > 0 {
		lines = bytes.Contains(of[from:end], []byte("\n")) || lines && end-from <= len("null")
		value, err := w.value(want, w.from+from, lines)
		return slices.Concat(of[:from], value, of[end:]), err
	}
	value, err := w.value(want, w.from+len(body), lines)
	between := " "
	if lines {
		between = "\n" + w.indent(w.from+len(body))
	}
	return slices.Concat(body, []byte(","+between+`"want": `), value, tail), err
}

// value returns the value at a place of the text, on one line or on several.
func (w wantWriter) value(want fixture.Want, at int, lines bool) ([]byte, error) {
	var encoded, out bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(want); err != nil {
		return nil, err
	}
	if !lines {
		err := json.Indent(&out, encoded.Bytes(), "", "")
		one := strings.NewReplacer(",\n", ", ", "\n", "").Replace(out.String()) // no text in JSON has an end of a line
		return []byte(one), err
	}
	prefix := w.indent(at)
	step := cmp.Or(prefix[:len(prefix)/w.depth], "  ")
	err := json.Indent(&out, bytes.TrimSpace(encoded.Bytes()), prefix, step)
	return out.Bytes(), err
}

// indent is the space at the beginning of the line that has a place of the text.
func (w wantWriter) indent(at int) string {
	line := w.text[bytes.LastIndexByte(w.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
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
