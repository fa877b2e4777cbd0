package plugin

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Which values a Veil hides, in bytes.
const (
	shortestHidden = 4 // what is shorter, such as 1, yes or 443, is in too many texts
	shortestWithin = 8 // what is shorter is hidden where it stands alone: prod, and not product
)

const hidden = "(hidden)"

// Veil puts "(hidden)" in the place of secrets, in every form in which they are commonly
// printed. A nil Veil shows them.
type Veil struct {
	forms []string  // sorted
	first [256]bool // the bytes that they begin with
}

// NewVeil returns a Veil over these secrets.
func NewVeil(secrets ...string) *Veil {
	v := &Veil{}
	v.add(secrets)
	return v
}

func (v *Veil) add(secrets []string) {
	for _, s := range secrets {
		v.addForms(strings.TrimSpace(s))
		if !strings.Contains(s, "\n") {
			continue
		}
		for line := range strings.SplitSeq(s, "\n") {
			v.addForms(strings.TrimSpace(line))
		}
	}
	if len(secrets) > 0 {
		slices.Sort(v.forms)
		v.forms = slices.Compact(v.forms)
	}
}

// addForms adds a text as it is, and as it is in logs, in Go and in JSON.
func (v *Veil) addForms(s string) {
	if len(s) < shortestHidden || len(s) < shortestWithin && harmless(s) {
		return
	}
	v.addForm(s)
	if !strings.ContainsFunc(s, special) {
		return
	}
	quoted := strconv.Quote(s)
	encoded, _ := json.Marshal(s) // of a string, which does not fail
	for _, form := range []string{Printable(s, len(s)), quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1])} {
		if len(form) >= shortestHidden {
			v.addForm(form)
		}
	}
}

// special reports whether a character is written in another way somewhere.
func special(r rune) bool {
	switch r {
	case '"', '\\', '<', '>', '&':
		return true
	}
	return r < ' ' || r > '~'
}

func (v *Veil) addForm(form string) {
	v.forms = append(v.forms, form)
	v.first[form[0]] = true
}

// harmless are words that are in many environments and in many texts, and tell nobody
// anything.
func harmless(s string) bool {
	switch strings.ToLower(s) {
	case "true", "false", "none", "null", "auto", "trace", "debug", "info", "warn", "warning", "error":
		return true
	}
	return false
}

// Text returns s without the secrets.
func (v *Veil) Text(s string) string { return v.hide(s, false) }

// hide is Text. Of a text that was cut off it also hides the beginning of a secret that
// is its end.
func (v *Veil) hide(text string, cut bool) string {
	if v == nil {
		return text
	}
	var shown strings.Builder
	done := 0
	for at := 0; at+shortestHidden <= len(text); {
		n := v.match(text, at, cut)
		if n == 0 {
			at++
			continue
		}
		shown.WriteString(text[done:at] + hidden)
		at += n
		done = at
	}
	if done == 0 {
		return text
	}
	return shown.String() + text[done:]
}

// maxSteps bounds the search for a secret at one place. What needs more was made to: then
// all that follows is hidden, which takes no time.
const maxSteps = 16

// match returns how many bytes of text, from at on, are a secret: the longest that begins there.
func (v *Veil) match(text string, at int, cut bool) int {
	rest := text[at:]
	if !v.first[rest[0]] {
		return 0
	}
	if cut && v.beginWith(rest) {
		return len(rest)
	}
	for range maxSteps {
		form := v.last(rest)
		whole := form != "" && strings.HasPrefix(rest, form)
		switch {
		case whole && (len(form) >= shortestWithin || alone(text, at, at+len(form))):
			return len(form)
		case whole:
			rest = form[:len(form)-1]
		default: // what rest begins with is no longer than what it shares with form
			rest = rest[:shared(rest, form)]
		}
		if len(rest) < shortestHidden {
			return 0
		}
	}
	return len(text) - at
}

// beginWith reports whether a form begins with s.
func (v *Veil) beginWith(s string) bool {
	i, _ := slices.BinarySearch(v.forms, s)
	return i < len(v.forms) && strings.HasPrefix(v.forms[i], s)
}

// last returns the last form that is not behind s, "" if there is none. Of the forms that s begins with
// it is the longest, or they all are before it.
func (v *Veil) last(s string) string {
	i, found := slices.BinarySearch(v.forms, s)
	switch {
	case found:
		return s
	case i == 0:
		return ""
	}
	return v.forms[i-1]
}

// shared is how many bytes two texts begin with alike.
func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// alone reports whether text[from:to] is no part of a longer word or number.
func alone(text string, from, to int) bool {
	return (from == 0 || !inWord(text[from-1]) || !inWord(text[from])) && (to == len(text) || !inWord(text[to]) || !inWord(text[to-1]))
}

func inWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= 0x80
}
