// Package json looks single values up in JSON, for plugins that ship with the proxy:
// the standard library's would make one twenty times as large. It is no decoder, and
// takes text for JSON that is none; what it reads was written by a program, or has been
// checked against a plugin's schema.
package json

import wp "github.com/wasmproxy/wasmproxy/sdk"

const errJSON = wp.Failure("is not JSON")

// Find returns the value at a path of keys: a string without its quotes, but with its
// escapes, all else as it stands. Empty text holds nothing.
func Find(json string, path ...string) (value string, ok bool, err error) {
	if json == "" {
		return "", false, nil
	}
	for _, key := range path {
		if json, ok, err = member(json, key); !ok {
			return "", false, err
		}
	}
	if json[0] == '"' {
		json = json[1 : len(json)-1]
	}
	return json, true, nil
}

// member returns the value of one key of an object.
func member(json, key string) (value string, ok bool, err error) {
	s := scanner{text: json}
	if !s.token('{') {
		return "", false, errJSON
	}
	for !s.token('}') {
		name, ok := s.value()
		if !ok || name[0] != '"' || !s.token(':') {
			return "", false, errJSON
		}
		value, ok := s.value()
		if !ok {
			return "", false, errJSON
		}
		if name[1:len(name)-1] == key {
			return value, true, nil
		}
		s.token(',')
	}
	return "", false, nil
}

// scanner is a place in a JSON text.
type scanner struct {
	text string
	at   int
}

// token passes white space and, if it comes next, the byte.
func (s *scanner) token(want byte) bool {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == want {
		s.at++
		return true
	}
	return false
}

func isSpace(b byte) bool {
	switch b {
	case ' ', '\n', '\t', '\r':
		return true
	}
	return false
}

// value passes one value, and returns it as it stands.
func (s *scanner) value() (string, bool) {
	s.token(' ')
	start, depth := s.at, 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			if !s.quoted() {
				return "", false
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return s.text[start:s.at], s.at > start
			}
			depth--
			s.at++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return s.text[start:s.at], s.at > start
			}
			s.at++
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return s.text[start:s.at], true
		}
	}
	return s.text[start:], false
}

// quoted passes a string.
func (s *scanner) quoted() bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		}
	}
	return false
}

// Elements returns the elements of a list, strings without their quotes. Empty text has none.
func Elements(json string) (all []string, err error) {
	if json == "" {
		return nil, nil
	}
	s := scanner{text: json}
	if !s.token('[') {
		return nil, errJSON
	}
	for !s.token(']') {
		element, ok := s.value()
		if !ok {
			return nil, errJSON
		}
		if element[0] == '"' {
			element = element[1 : len(element)-1]
		}
		all = append(all, element)
		s.token(',')
	}
	return all, nil
}
