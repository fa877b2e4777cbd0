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

// A member is one name and value of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns the members of the JSON object that a text begins with, and what comes after the object.
func membersOf(text []byte) (all []member, rest []byte, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if token, err := dec.Token(); err != nil {
		return nil, nil, err
	} else if token != json.Delim('{') {
		return nil, nil, fmt.Errorf("the JSON begins with %v and is not an object", token)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var m member
		m.name, _ = name.(string)
		if err := dec.Decode(&m.value); err != nil {
			return nil, nil, err
		}
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, err
	}
	return all, text[dec.InputOffset():], nil
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
	body    []byte // as it came
	members []member
	rest    []byte // of the body, after the object
	changed bool
	err     error // the first one
}

func newEdit(body []byte) edit {
	members, rest, err := membersOf(body)
	return edit{body: body, members: members, rest: rest, err: err}
}

// text returns the body with the changes. Without any it is as it came.
func (e *edit) text() json.RawMessage {
	if !e.changed {
		return e.body
	}
	text := []byte("{")
	for i, m := range e.members {
		if i > 0 {
			text = append(text, ',')
		}
		name, _ := textOf(m.name) // which cannot fail
		text = append(append(text, name...), ':')
		text = append(text, m.value...)
	}
	return append(append(text, '}'), e.rest...)
}

// value returns the text of a field's value that counts, nil if there is none.
func (e *edit) value(name string) json.RawMessage {
	for _, m := range slices.Backward(e.members) {
		if strings.EqualFold(m.name, name) {
			return m.value
		}
	}
	return nil
}

// set gives a field a value. All others keep their order, and how their values are spelled. White space goes, and names may be
// spelled without escapes.
func (e *edit) set(name string, value any) { e.put(name, strings.EqualFold, value) }

// setEntry sets an entry of an object that Docker decodes into a map: its keys are exact.
func (e *edit) setEntry(key, value string) {
	e.put(key, func(a, b string) bool { return a == b }, value)
}

func (e *edit) put(name string, same func(a, b string) bool, value any) {
	text, err := textOf(value)
	e.fail(err)
	e.changed = true
	for i, m := range slices.Backward(e.members) {
		if same(m.name, name) {
			e.members[i].value = text
			return
		}
	}
	e.members = append(e.members, member{name, text})
}

// textOf encodes a value. A json.RawMessage keeps the spelling of its numbers and strings, but not its white space.
func textOf(value any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}

// within edits the object that a field has. It is made if f puts something into it.
func (e *edit) within(name string, f func(*edit)) {
	value := e.value(name)
	if len(value) == 0 || value[0] != '{' {
		value = []byte("{}")
	}
	inner := newEdit(value)
	f(&inner)
	if inner.changed {
		e.set(name, inner.text())
	}
	e.fail(inner.err)
}

// deleteEntry deletes all entries of a key from each object of a field that Docker decodes into
// one map.
func (e *edit) deleteEntry(field, key string) {
	for i, m := range e.members {
		if !strings.EqualFold(m.name, field) || m.value[0] != '{' {
			continue
		}
		object := newEdit(m.value)
		object.members = slices.DeleteFunc(object.members, func(m member) bool { return m.name == key })
		object.changed, e.changed = true, true
		e.members[i].value = object.text()
		e.fail(object.err)
	}
}

func (e *edit) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}
