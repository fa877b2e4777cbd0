package plugin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Which secrets a Redactor replaces, in bytes.
const (
	minSecret    = 4 // shorter values, such as 1, yes or 443, are in too many texts
	minSubstring = 8 // shorter values are replaced as whole words only: prod, and not product
)

// Redacted is the text that stands in the place of a secret.
const Redacted = "(hidden)"

// Redactor replaces each secret that it knows, in every form in which it is commonly printed,
// by Redacted. It is best effort: values of less than four bytes, common words, and secrets
// that a plugin has encoded or split in another way stay. A nil Redactor replaces nothing.
type Redactor struct {
	forms []string  // sorted
	first [256]bool // the bytes that they begin with
}

// NewRedactor returns a Redactor of these secrets.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	r.add(secrets)
	return r
}

func (r *Redactor) add(secrets []string) {
	for _, s := range secrets {
		r.addForms(strings.TrimSpace(s))
		if !strings.Contains(s, "\n") {
			continue
		}
		for line := range strings.SplitSeq(s, "\n") {
			r.addForms(strings.TrimSpace(line))
		}
	}
	if len(secrets) > 0 {
		slices.Sort(r.forms)
		r.forms = slices.Compact(r.forms)
	}
}

// addForms adds a text as it is, and as it is in logs, in Go and in JSON.
func (r *Redactor) addForms(s string) {
	if len(s) < minSecret || len(s) < minSubstring && slices.Contains(commonWords, strings.ToLower(s)) {
		return
	}
	r.addForm(s)
	if !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) }) {
		return // it is written in one way everywhere
	}
	quoted := strconv.Quote(s)
	encoded, _ := json.Marshal(s) // of a string, which does not fail
	for _, form := range []string{Printable(s, len(s)), quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1])} {
		if len(form) >= minSecret {
			r.addForm(form)
		}
	}
}

func (r *Redactor) addForm(form string) {
	r.forms = append(r.forms, form)
	r.first[form[0]] = true
}

// commonWords are in many environments and in many texts, so that they are no secrets.
var commonWords = []string{"true", "false", "none", "null", "auto", "trace", "debug", "info", "warn", "warning", "error"}

// Text returns s without the secrets.
func (r *Redactor) Text(s string) string { return r.redact(s, false) }

// redact is Text. If the text was cut off, it also replaces the beginning of a secret at its
// end.
func (r *Redactor) redact(text string, cut bool) string {
	if r == nil {
		return text
	}
	var shown strings.Builder
	done := 0
	for at := 0; at+minSecret <= len(text); {
		n := r.match(text, at, cut)
		if n == 0 {
			at++
			continue
		}
		shown.WriteString(text[done:at] + Redacted)
		at += n
		done = at
	}
	if done == 0 {
		return text
	}
	return shown.String() + text[done:]
}

// maxSteps bounds the search for a secret at one place. A text that needs more was made to:
// then all that follows is replaced, which takes no time.
const maxSteps = 16

// match returns how many bytes of text, from at on, are a secret: the longest that begins there.
func (r *Redactor) match(text string, at int, cut bool) int {
	rest := text[at:]
	if !r.first[rest[0]] {
		return 0
	}
	if cut {
		if i, _ := slices.BinarySearch(r.forms, rest); i < len(r.forms) && strings.HasPrefix(r.forms[i], rest) {
			return len(rest)
		}
	}
	for range maxSteps {
		// The last form that is not behind rest: of those that rest begins with it is the longest, or they all are before it.
		form := ""
		switch i, found := slices.BinarySearch(r.forms, rest); {
		case found:
			form = rest
		case i > 0:
			form = r.forms[i-1]
		}
		whole := form != "" && strings.HasPrefix(rest, form)
		switch {
		case whole && (len(form) >= minSubstring || isWord(text, at, at+len(form))):
			return len(form)
		case whole:
			rest = form[:len(form)-1]
		default: // what rest begins with is no longer than what it shares with form
			n := 0
			for n < min(len(rest), len(form)) && rest[n] == form[n] {
				n++
			}
			rest = rest[:n]
		}
		if len(rest) < minSecret {
			return 0
		}
	}
	return len(text) - at
}

// isWord reports whether text[from:to] is no part of a longer word or number.
func isWord(text string, from, to int) bool {
	begins := from == 0 || !inWord(text[from-1]) || !inWord(text[from])
	ends := to == len(text) || !inWord(text[to]) || !inWord(text[to-1])
	return begins && ends
}

func inWord(b byte) bool {
	switch {
	case b >= '0' && b <= '9', b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b >= 0x80:
		return true
	}
	return false
}
