package ledger

import (
	"cmp"
	"strings"
)

// SentField is a CRI field that a plugin wants and the container runtime has.
type SentField struct {
	Target Target
	Sent   string // what the runtime got last
	Shown  string // what the kernel showed then, in the form of AsRead; empty if that was the value
	Fresh  bool   // nobody has looked since it was sent
}

// AsRead is the text of a file as [SentField] has it: an empty one is a newline.
func AsRead(text string) string { return cmp.Or(text, "\n") }

// Fields returns the CRI fields of an object that plugins want and the runtime has, without those
// that the kernel has lost or that are left alone.
func (l *Ledger) Fields(id ID) (all []SentField) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return nil
	}
	for t, v := range o.values {
		if _, file := t.File(); !file && v.held() {
			all = append(all, SentField{t, v.Sent, v.Read, v.fresh})
		}
	}
	return all
}

// held reports whether the kernel is to hold a field as the runtime got it last: what the first plugin
// wants.
func (v *Value) held() bool {
	return len(v.Wishes) > 0 && v.Sent != "" && v.Sent == v.Wishes[0].Value && !v.Lost && !v.Fight
}

// Seen notes what the kernel shows of fields after the runtime got them: found has those of which it
// shows another value. Of a field that was not looked at since, that is the runtime's: it may not
// write the field, or in another form. Seen reports whether something has overwritten another one.
func (l *Ledger) Seen(id ID, fields []SentField, found map[Target]string) (overwritten bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return false
	}
	save := false
	for _, f := range fields {
		v, text, other := o.values[f.Target], "", false
		if text, other = found[f.Target]; v == nil || !v.held() || v.Sent != f.Sent {
			continue
		}
		if v.fresh && other {
			v.Read, save = AsRead(text), true
		} else if other {
			overwritten = true
		}
		v.fresh = false
	}
	if save {
		l.changed(id)
	}
	return overwritten
}

// Overwritten notes that the kernel shows something else of fields than the runtime got last: they
// are lost, as with [Ledger.Lost], and to be repaired. One that was overwritten too often is a
// fight, and left alone.
func (l *Ledger) Overwritten(id ID, found map[Target]string, why Why) (fights []Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return nil
	}
	save := false
	for t, text := range found {
		v := o.values[t]
		if v == nil || !v.held() || v.fresh || v.Read == AsRead(text) {
			continue
		}
		save = true
		if v.overwritten(AsRead(text), false, why) == Fight {
			v.Cause = o.cause
			fights = append(fights, v.fieldWrite(t, Fight, o.cause))
		} else {
			v.Lost, v.cause = true, ""
			if why != Drift { // a scan has no cause
				v.cause = o.cause
			}
		}
	}
	if save {
		l.changed(id)
	}
	return fights
}

// Repairs returns the repairs of fields that are due: [Ledger.Resets] has their values.
func (l *Ledger) Repairs(id ID) (due []Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.find(id); o != nil {
		for t, v := range o.values {
			if v.Lost && v.Found != "" && len(v.Wishes) > 0 {
				due = append(due, v.fieldWrite(t, Repair, v.cause))
			}
		}
	}
	return due
}

func (v *Value) fieldWrite(t Target, kind Kind, cause string) Write {
	w := Write{Kind: kind, Field: strings.TrimPrefix(string(t), string(Field(""))), Value: v.Wishes[0].Value, Found: v.Found, Cause: cause}
	w.Plugin, w.Hook = v.owner()
	return w
}

// Unmoved notes that the kernel does not show what the runtime has just got of a field, and why. It
// is left alone while the kernel shows that.
func (l *Ledger) Unmoved(id ID, t Target, shown string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.find(id); o != nil && o.values[t] != nil {
		v := o.values[t]
		v.Read, v.Failed, v.fresh = AsRead(shown), err.Error(), false
		l.changed(id)
	}
}
