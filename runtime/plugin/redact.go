package plugin

import "github.com/wasmproxy/wasmproxy/abi"

// MayReadSecrets reports whether the plugin may read secrets: only what such a plugin says
// is redacted.
func (s *scope) MayReadSecrets() bool {
	return s.event != nil && (s.of.Capabilities.Has(abi.Env) || s.of.Capabilities.Has(abi.Credentials))
}

// Sanitize returns what the plugin says as one printable, redacted line. It looks at the
// first limit bytes only.
func (a *Adjustment) Sanitize(text string, limit int) string {
	kept := a.redactor().redact(text[:min(len(text), limit)], len(text) > limit)
	return Printable(kept, len(kept))
}

// maxRedact is how many bytes Redact looks at: keys, and errors that name them, may have
// megabytes, and to search those for secrets as long takes minutes.
const maxRedact = 16 << 10

// Redact returns a text that the plugin has a part in, redacted: its first 16 KiB.
func (a *Adjustment) Redact(text string) string {
	return a.redactor().redact(text[:min(len(text), maxRedact)], len(text) > maxRedact)
}

// redaction is the secrets that a plugin may have read in a call, as far as they were
// gathered. That costs nothing until the plugin says something.
type redaction struct {
	Redactor
	next    int // argument of the next Event.Secrets
	changes int // of the adjustment that were looked at
}

// redactor knows all that the plugin may have read by now, or has set; it is nil if the
// plugin may read no secrets.
func (a *Adjustment) redactor() *Redactor {
	if !a.MayReadSecrets() {
		return nil
	}
	if a.secrets == nil {
		a.secrets = &redaction{}
	}
	s := a.secrets
	more, next := a.event.Secrets(a.of.Capabilities, s.next)
	s.next = next
	for _, o := range a.changes[min(s.changes, len(a.changes)):] {
		if o.Change.isEnv() {
			more = append(more, o.Change.Text)
		}
	}
	s.changes = len(a.changes)
	s.add(more)
	return &s.Redactor
}

// redactError returns the error with its text redacted.
func (a *Adjustment) redactError(err error) error {
	if err == nil || !a.MayReadSecrets() {
		return err
	}
	text := err.Error()
	if redacted := a.Redact(text); redacted != text {
		return &redactedError{err, redacted}
	}
	return err
}

// redactedError is an error with another text. The text of the error that it unwraps has
// secrets in it.
type redactedError struct {
	error
	text string
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.error }
