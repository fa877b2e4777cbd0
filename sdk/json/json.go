// Package json reads a plugin's settings, and annotations that are objects in JSON. It checks the whole
// text first, and then looks members up by their keys. It adds 7 to 10 KB to a plugin that TinyGo builds;
// encoding/json adds several hundred.
//
//	func configure(config string) error {
//		settings := json.Parse(config)
//		policy = settings.OneOf("policy", "auto", "none", "auto")
//		threshold = settings.Int("threshold", 0, 100, 50)
//		return settings.Err()
//	}
//
// Each getter looks its key up in the text. An object with many keys is read in one pass by [Object.TextMembers] or
// [Object.ObjectMembers].
//
// It writes no JSON, fills no structs, and knows no schema: unknown keys are the host's to refuse, by the
// manifest's schema.
package json

import wp "github.com/wasmproxy/wasmproxy/sdk"

// Object is an object in JSON, or one that is not there. A getter returns its last argument for a member that is
// not there or null, or that is of another type or out of range. [Object.Err] then says so.
type Object struct {
	doc *document
	at  int // where it begins, -1 if it is not there
}

// document is a text with the first error that was found in it.
type document struct {
	text string
	err  error
}

// Parse reads a text that is one object as RFC 8259 has it, at most 64 values deep. An empty text is an empty object.
// If it is not, the object is not there, and [Object.Err] says at which byte the text is wrong.
func Parse(text string) Object {
	o := Object{&document{text: text}, space(text, 0)}
	if text == "" {
		return Object{o.doc, -1}
	}
	end, wrong := value(text, o.at, 0)
	switch rest := space(text, end); {
	case wrong != "":
		o.doc.fail(end, wrong)
	case rest < len(text):
		o.doc.fail(rest, "more follows the value")
	case text[o.at] != '{':
		o.doc.fail(o.at, shortened(text[o.at:end])+" is not an object")
	default:
		return o
	}
	return Object{o.doc, -1}
}

// Err returns the first error of Parse, of a getter of the object or of those within it, or of Fail. It has the path of
// keys, the place in bytes from 0, and what is wrong: "pressure.raiseAbove at byte 28: 101 is not a whole number from 1 to 100".
func (o Object) Err() error { return o.doc.err }

// Fail makes an error of a member, in the plugin's own words; of the object itself if key is "".
func (o Object) Fail(key, message string) {
	at := o.at
	if key != "" {
		if m, ok := o.find(key); ok {
			at = m.at
		} else {
			message = key + ": " + message
		}
	}
	o.doc.fail(at, message)
}

// fail keeps the first error.
func (d *document) fail(at int, message string) {
	if d.err != nil {
		return
	}
	if at >= 0 {
		where := "byte " + wp.FormatInt(int64(at))
		if path := pathTo(d.text, at); path != "" {
			where = path + " at " + where
		}
		message = where + ": " + message
	}
	d.err = wp.Failure(message)
}

// find returns the member with a key. Two with one key are an error.
func (o Object) find(key string) (found member, ok bool) {
	if o.at < 0 {
		return found, false
	}
	c := enter(o.doc.text, o.at)
	for m, more := c.next(); more; m, more = c.next() {
		if m.key() != key {
			continue
		}
		if ok {
			o.doc.fail(m.keyAt, "the key occurs twice")
		}
		found, ok = m, true
	}
	return found, ok
}

// get returns the text of a member as it stands, "" if it is not there or null.
func (o Object) get(key string) (m member, raw string) {
	m, ok := o.find(key)
	if raw = m.text[m.at:m.end]; !ok || raw == "null" {
		return m, ""
	}
	return m, raw
}

// refuse makes the error of a member that is not as it should be.
func (o Object) refuse(m member, want string) {
	o.doc.fail(m.at, shortened(m.text[m.at:m.end])+" is not "+want)
}

// Has reports whether there is a member with the key that is not null.
func (o Object) Has(key string) bool {
	_, raw := o.get(key)
	return raw != ""
}

// Text returns a string.
func (o Object) Text(key, otherwise string) string {
	m, raw := o.get(key)
	switch {
	case raw == "":
		return otherwise
	case raw[0] != '"':
		o.refuse(m, "a string")
		return otherwise
	}
	return unquoted(raw)
}

// OneOf returns a string that is one of these values.
func (o Object) OneOf(key, otherwise string, values ...string) string {
	m, raw := o.get(key)
	if raw == "" {
		return otherwise
	}
	list := ""
	for i, v := range values {
		if raw[0] == '"' && unquoted(raw) == v {
			return v
		}
		switch {
		case i == 0:
		case i == len(values)-1:
			list += " or "
		default:
			list += ", "
		}
		list += v
	}
	o.refuse(m, list)
	return otherwise
}

// Int returns a whole number, written in digits alone, from least to most.
func (o Object) Int(key string, least, most, otherwise int64) int64 {
	m, raw := o.get(key)
	if raw == "" {
		return otherwise
	}
	n, ok := wp.ParseInt(raw)
	if !ok || n < least || n > most {
		o.refuse(m, "a whole number from "+wp.FormatInt(least)+" to "+wp.FormatInt(most))
		return otherwise
	}
	return n
}

// Bool returns true or false.
func (o Object) Bool(key string, otherwise bool) bool {
	m, raw := o.get(key)
	switch raw {
	case "":
		return otherwise
	case "true", "false":
		return raw == "true"
	}
	o.refuse(m, "true or false")
	return otherwise
}

// Parsed returns what parse makes of a string, or of a number as it is written: quantity.Value, or a function of the
// plugin's own. Its error becomes the member's.
func (o Object) Parsed(key string, parse func(text string) (int64, error), otherwise int64) int64 {
	m, raw := o.get(key)
	if raw == "" {
		return otherwise
	}
	switch raw[0] {
	case '{', '[', 't', 'f':
		o.refuse(m, "a string or a number")
		return otherwise
	case '"':
		raw = unquoted(raw)
	}
	v, err := parse(raw)
	if err != nil {
		o.doc.fail(m.at, err.Error())
		return otherwise
	}
	return v
}

// Object returns an object within the object. It is not there if the member is not.
func (o Object) Object(key string) Object {
	m, raw := o.get(key)
	if raw != "" && raw[0] == '{' {
		return Object{o.doc, m.at}
	}
	if raw != "" {
		o.refuse(m, "an object")
	}
	return Object{o.doc, -1}
}

// Texts returns a list of strings, nil if it is not there.
func (o Object) Texts(key string) (all []string) {
	o.elements(key, '"', "a string", func(m member) { all = append(all, unquoted(m.text[m.at:m.end])) })
	return all
}

// Objects returns a list of objects, nil if it is not there.
func (o Object) Objects(key string) (all []Object) {
	o.elements(key, '{', "an object", func(m member) { all = append(all, Object{o.doc, m.at}) })
	return all
}

// elements calls each for the elements of a list, all of which must begin with one character.
func (o Object) elements(key string, first byte, what string, each func(member)) {
	m, raw := o.get(key)
	if raw == "" {
		return
	}
	if raw[0] != '[' {
		o.refuse(m, "a list")
		return
	}
	c := enter(m.text, m.at)
	for e, ok := c.next(); ok; e, ok = c.next() {
		if e.text[e.at] != first {
			o.refuse(e, what)
			return
		}
		each(e)
	}
}

// Keys returns the keys of the object, in their order.
func (o Object) Keys() (all []string) {
	if o.at < 0 {
		return nil
	}
	c := enter(o.doc.text, o.at)
	for m, ok := c.next(); ok; m, ok = c.next() {
		all = append(all, m.key())
	}
	return all
}

// TextMembers ranges over the members of the object, all of which must be strings, in one pass. A key that occurs twice comes twice.
func (o Object) TextMembers() wp.Entries {
	return func(yield func(key, text string) bool) {
		o.each('"', "a string", func(m member) bool { return yield(m.key(), unquoted(m.text[m.at:m.end])) })
	}
}

// ObjectMembers ranges over the members of the object, all of which must be objects, in one pass. A key that occurs twice comes twice.
func (o Object) ObjectMembers() func(yield func(key string, within Object) bool) {
	return func(yield func(string, Object) bool) {
		o.each('{', "an object", func(m member) bool { return yield(m.key(), Object{o.doc, m.at}) })
	}
}

// each calls f for the members that are not null, all of which must begin with one character.
func (o Object) each(first byte, what string, f func(member) bool) {
	if o.at < 0 {
		return
	}
	c := enter(o.doc.text, o.at)
	for m, ok := c.next(); ok; m, ok = c.next() {
		switch m.text[m.at] {
		case 'n':
			continue
		case first:
			if f(m) {
				continue
			}
		default:
			o.refuse(m, what)
		}
		return
	}
}

// maxShown is how many bytes of a value an error shows.
const maxShown = 64

func shortened(raw string) string {
	if len(raw) <= maxShown {
		return raw
	}
	end := maxShown
	for end > 0 && raw[end]&0xc0 == 0x80 { // within a character
		end--
	}
	return raw[:end] + "..."
}
