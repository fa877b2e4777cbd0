package plugin

import "github.com/wasmproxy/wasmproxy/abi"

// This file keeps secrets out of what a plugin says. All of it costs nothing until a
// plugin says something.

// Confided reports whether the plugin may read secrets: only what such a plugin says is
// searched for them.
func (a *Adjustment) Confided() bool {
	return a.event != nil && (a.has.Has(abi.Env) || a.has.Has(abi.Credentials))
}

// Said returns what the plugin says as one printable line without the secrets that it
// may have read. It looks at the first limit bytes only; that there are more is to be seen.
func (a *Adjustment) Said(text string, limit int) string {
	kept := a.veil().hide(text[:min(len(text), limit)], len(text) > limit)
	return Printable(kept, len(kept))
}

// maxHide is how many bytes Hide looks at: keys, and errors that name them, may have
// megabytes, and to search those for secrets as long takes minutes.
const maxHide = 16 << 10

// Hide returns a text that the plugin has a part in, without the secrets: its first 16 KiB.
func (a *Adjustment) Hide(text string) string {
	return a.veil().hide(text[:min(len(text), maxHide)], len(text) > maxHide)
}

// veil is over all that the plugin may have read by now, or has set; nil if it may read
// no secrets.
func (a *Adjustment) veil() *Veil {
	if !a.Confided() {
		return nil
	}
	if a.secrets == nil {
		a.secrets = &confided{veil: NewVeil()}
	}
	s := a.secrets
	more, next := a.event.Secrets(a.has, s.next)
	s.veil.add(more)
	s.next = next
	for _, o := range a.changes[min(s.changes, len(a.changes)):] {
		if o.Change.isEnv() {
			s.veil.add([]string{o.Change.Text})
		}
	}
	s.changes = len(a.changes)
	return s.veil
}

// confided is what a veil is over.
type confided struct {
	veil    *Veil
	next    int // Event.Secrets goes on there
	changes int // of the adjustment that were looked at
}

// hideIn returns the error with another text, if that has secrets in it.
func (a *Adjustment) hideIn(err error) error {
	if err == nil || !a.Confided() {
		return err
	}
	text := err.Error()
	if shown := a.Hide(text); shown != text {
		return &veiledError{err, shown}
	}
	return err
}

// veiledError is an error in other words.
type veiledError struct {
	error
	text string
}

// Error returns the words.
func (e *veiledError) Error() string { return e.text }

// Unwrap returns the error, whose own text has secrets in it.
func (e *veiledError) Unwrap() error { return e.error }
