package plugin

import (
	"encoding/json"
	"slices"
	"sort"
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
	forms []string // sorted
	begin [257]int // begin[b] to begin[b+1] are the forms that begin with byte b
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
	if len(secrets) == 0 {
		return
	}
	slices.Sort(r.forms)
	r.forms = slices.Compact(r.forms)
	at := 0
	for b := range r.begin {
		for at < len(r.forms) && int(r.forms[at][0]) < b {
			at++
		}
		r.begin[b] = at
	}
}

// addForms adds a text as it is, and as it is in logs, in Go and in JSON.
func (r *Redactor) addForms(s string) {
	if len(s) < minSecret || len(s) < minSubstring && slices.Contains(commonWords, strings.ToLower(s)) {
		return
	}
	r.forms = append(r.forms, s)
	if !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' || strings.ContainsRune(`"\<>&`, c) }) {
		return // it is written in one way everywhere
	}
	quoted := strconv.Quote(s)
	encoded, _ := json.Marshal(s) // of a string, which does not fail
	for _, form := range []string{Printable(s, len(s)), quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1])} {
		if len(form) >= minSecret {
			r.forms = append(r.forms, form)
		}
	}
}

// commonWords are in many environments and in many texts, so that they are no secrets.
var commonWords = []string{"true", "false", "none", "null", "auto", "trace", "debug", "info", "warn", "warning", "error"}

// Text returns s without the secrets.
func (r *Redactor) Text(s string) string { return r.redact(s, false) }

// maxCompared is how many bytes of secrets are compared for each byte of a text, on average. A text of nothing but
// addresses, in a pod whose environment has those of 5,000 services, needs 27.
const maxCompared = 128

// redact is Text. If the text was cut off, it also replaces the beginning of a secret at its
// end. A plugin can make secrets and texts that are much alike, and the time that they take is in no limit of the
// plugin's: after maxCompared all that follows in the text is replaced.
func (r *Redactor) redact(text string, cut bool) string {
	if r == nil {
		return text
	}
	var shown strings.Builder
	done, left := 0, maxCompared*len(text)
	for at := 0; at+minSecret <= len(text); {
		n := r.match(text, at, cut, &left)
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

// match returns how many bytes of text, from at on, are a secret: the longest that begins there. It takes what it compares
// from left. With nothing left, it is all that follows.
func (r *Redactor) match(text string, at int, cut bool, left *int) (found int) {
	rest := text[at:]
	forms := r.forms[r.begin[rest[0]]:r.begin[int(rest[0])+1]] // that begin with rest[:n], and are longer
	for n := 1; n < len(rest) && len(forms) > 0; n++ {
		*left--
		if b := rest[n]; forms[0][n] != b || forms[len(forms)-1][n] != b {
			forms = forms[sort.Search(len(forms), func(i int) bool { *left--; return forms[i][n] >= b }):]
			forms = forms[:sort.Search(len(forms), func(i int) bool { *left--; return forms[i][n] > b })]
		}
		if *left < 0 {
			return len(rest)
		}
		if end := n + 1; len(forms) > 0 && len(forms[0]) == end {
			atCut := cut && end == len(rest) // it may go on
			if atCut || end >= minSubstring || isWord(text, at, at+end) {
				found = end
			}
			forms = forms[1:]
		}
	}
	if cut && len(forms) > 0 { // rest is the beginning of these
		return len(rest)
	}
	return found
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
