package docker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxBody is the largest body of a request that plugins hook. Docker's own requests have some
// kilobytes.
const maxBody = 8 << 20

// A member is one name and value of a JSON object, as offsets in its text.
type member struct {
	name       string
	begin      int // of the name's text
	start, end int // of the value's text
}

// membersOf returns the members of the JSON object that a text begins with, and the offset of
// its closing brace.
func membersOf(text []byte) (all []member, closing int, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if token, err := dec.Token(); err != nil {
		return nil, 0, err
	} else if token != json.Delim('{') {
		return nil, 0, fmt.Errorf("the JSON begins with %v and is not an object", token)
	}
	for dec.More() {
		m := member{begin: int(dec.InputOffset())}
		m.begin += bytes.IndexByte(text[m.begin:], '"')
		name, err := dec.Token()
		if err != nil {
			return nil, 0, err
		}
		m.name, _ = name.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, 0, err
		}
		m.end = int(dec.InputOffset())
		m.start = m.end - len(value)
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, err
	}
	return all, int(dec.InputOffset()) - 1, nil
}

// elementsOf returns the texts of the elements of a JSON array; none of another value.
func elementsOf(text []byte) (all []json.RawMessage) {
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// An edit changes a JSON object that Docker decodes into a struct: a name there is any that
// differs from it by case only, and of several the last one counts.
type edit struct {
	text []byte
	err  error // the first one
}

// splice puts value where text[start:end] is.
func (e *edit) splice(start, end int, value []byte) {
	e.text = slices.Concat(e.text[:start], value, e.text[end:])
}

// value returns the text of a field's value that counts, nil if there is none.
func (e *edit) value(name string) []byte {
	all, _, err := membersOf(e.text)
	e.fail(err)
	for _, m := range slices.Backward(all) {
		if strings.EqualFold(m.name, name) {
			return e.text[m.start:m.end]
		}
	}
	return nil
}

// set gives a field a value. All others keep their text and order.
func (e *edit) set(name string, value any) { e.put(name, strings.EqualFold, value) }

// setEntry sets an entry of an object that Docker decodes into a map: its keys are exact.
func (e *edit) setEntry(key, value string) {
	e.put(key, func(a, b string) bool { return a == b }, value)
}

func (e *edit) put(name string, same func(a, b string) bool, value any) {
	text, err := textOf(value)
	e.fail(err)
	all, closing, err := membersOf(e.text)
	e.fail(err)
	if e.err != nil {
		return
	}
	for _, m := range slices.Backward(all) {
		if same(m.name, name) {
			e.splice(m.start, m.end, text)
			return
		}
	}
	key, err := textOf(name)
	e.fail(err)
	added := slices.Concat(key, []byte(":"), text)
	if len(all) > 0 {
		closing = all[len(all)-1].end
		added = append([]byte(","), added...)
	}
	e.splice(closing, closing, added)
}

// textOf encodes a value. Texts stay as they are.
func textOf(value any) ([]byte, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return v, nil
	case []json.RawMessage:
		text := []byte("[")
		for i, e := range v {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, e...)
		}
		return append(text, ']'), nil
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// within edits the object that a field has. It is made if f puts something into it.
func (e *edit) within(name string, f func(*edit)) {
	inner := edit{text: e.value(name)}
	if len(inner.text) == 0 || inner.text[0] != '{' {
		inner.text = []byte("{}")
	}
	before := inner.text
	f(&inner)
	e.fail(inner.err)
	if !bytes.Equal(before, inner.text) {
		e.set(name, json.RawMessage(inner.text))
	}
}

// deleteEntry deletes all entries of a key from each object of a field that Docker decodes into
// one map.
func (e *edit) deleteEntry(field, key string) {
	all, _, err := membersOf(e.text)
	e.fail(err)
	for _, m := range slices.Backward(all) {
		if !strings.EqualFold(m.name, field) || e.text[m.start] != '{' {
			continue
		}
		e.splice(m.start, m.end, e.without(e.text[m.start:m.end], key))
	}
}

// without returns an object's text without the entries of a key.
func (e *edit) without(object []byte, key string) []byte {
	all, _, err := membersOf(object)
	e.fail(err)
	i := slices.IndexFunc(all, func(m member) bool { return m.name == key })
	if i < 0 {
		return object
	}
	begin, end := all[i].begin, all[i].end
	switch {
	case i > 0:
		begin = all[i-1].end // with the comma before
	case len(all) > 1:
		end = all[1].begin
	}
	return e.without(slices.Concat(object[:begin], object[end:]), key)
}

func (e *edit) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}
