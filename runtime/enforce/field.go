package enforce

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Update is an update of the CRI fields of an object that the container runtime has accepted.
// Fields are those of the ABI, each value as text.
type Update struct {
	Kubelet map[Target]string // what kubelet asked for; empty if kubelet did not ask
	Asked   []Asked           // what plugins asked for
	At      time.Time         // when the update began; what plugins asked for since stays. Zero: nothing does
	Sent    map[Target]string // what the runtime was sent
	Makes   bool              // it makes the object: Has of Asked is kubelet's, whatever is known of that, and the runtime was sent the wishes
}

// Updated notes an update of fields, and saves it. The wish of a plugin ends when kubelet sends
// another value and the plugin does not repeat its wish.
func (r Record) Updated(u Update) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.find(r.id) == nil && len(u.Asked) == 0 {
		return
	}
	o := r.l.object(r.id)
	for t, value := range u.Kubelet {
		if v := o.values[t]; v != nil {
			v.hear(t, value, u.Asked, u.At)
		}
	}
	for _, a := range u.Asked {
		if a.Ends { // it has ended when Ask noted it, and the plugin may have asked again since
			continue
		}
		v := o.value(a.Target)
		v.Kubelet = cmp.Or(v.Kubelet, a.Has)
		if u.Makes {
			v.Kubelet = a.Has
		}
		if i := v.wishOf(a.Plugin); i >= 0 && v.Wishes[i].At.After(a.At) { // asked in another event meanwhile
			continue
		}
		if u.Makes {
			v.Last, v.Writing, v.Failed = a.Value, "", nil
		}
		v.ask(a.Wish)
	}
	for t, value := range u.Sent {
		if v := o.values[t]; v != nil {
			v.Last, v.Writing, v.Failed = value, "", nil
			o.dropUnused(t)
		}
	}
	r.l.changed(r.id)
}

// Sending notes, and saves, what the runtime is about to be sent of an object, which it may have taken also if no answer comes. A
// plugin may withdraw its wish before there is one.
func (r Record) Sending(values map[Target]string) {
	r.change(func(o *object) (changed bool) {
		for t, value := range values {
			if v := o.values[t]; v != nil {
				changed = v.sending(value) || changed
			}
		}
		return changed
	})
}

// sending reports whether the value is another one than the runtime has.
func (v *Value) sending(value string) (another bool) {
	another = v.Last != value
	if another {
		v.Writing = value
	}
	return another
}

// Repeats reports whether a value that kubelet sends for a field is kubelet's last one, so that it does not
// end the wishes of plugins.
func (r Record) Repeats(t Target, value string) (repeats bool) {
	r.with(func(o *object) { repeats = o.values[t] != nil && o.values[t].repeats(value) })
	return repeats
}

func (v *Value) repeats(value string) bool { return v.Kubelet != nil && *v.Kubelet == value }

// hear takes a value that kubelet sends.
func (v *Value) hear(t Target, value string, asked []Asked, began time.Time) {
	if v.repeats(value) {
		return
	}
	v.Kubelet = &value
	v.Wishes = slices.DeleteFunc(v.Wishes, func(w Wish) bool {
		earlier := began.IsZero() || w.At.Before(began)
		return earlier && !slices.ContainsFunc(asked, func(a Asked) bool { return a.Target == t && a.Plugin == w.Plugin })
	})
}

// Named notes the values of files that an update of the object names, which the runtime has
// accepted. One that the file shows because the host wrote it is kubelet's, too. Each file has the
// values that its may be.
func (r Record) Named(files map[string][]string, kernel Kernel) {
	r.change(func(o *object) (changed bool) {
		for file, values := range files {
			v := o.values[File(file)]
			if v != nil && v.Read != "" && slices.ContainsFunc(values, func(value string) bool { return kernel.Holds(file, value, v.Read) }) {
				changed = v.isKubelets(v.Read, kernel.Exact(file, "")) || changed
			}
		}
		return changed
	})
}

// Reread notes what the kernel holds exactly of a file, after an update of the object may have
// written it. With named the update did: it named the value.
func (r Record) Reread(file string, named bool, kernel Kernel) {
	r.change(func(o *object) (changed bool) {
		v := o.values[File(file)]
		if v == nil || v.Exact == "" {
			return false
		}
		known := v.Exact
		if named {
			known = ""
		}
		exact := cmp.Or(kernel.Exact(file, known), v.Exact)
		changed, v.Exact = exact != v.Exact, exact
		return changed
	})
}

// Resets returns the fields of which the runtime has another value than it should, and that
// value: the plugin's that asked first, or kubelet's if no plugin wants the field.
func (r Record) Resets() map[Target]string {
	due := map[Target]string{}
	r.with(func(o *object) {
		for t, v := range o.values {
			if _, file := t.File(); !file && v.unsent() {
				due[t], _ = v.reset()
			}
		}
	})
	return due
}

// unsent reports whether the runtime has, or may have, another value of a field than it should.
func (v *Value) unsent() bool {
	value, ok := v.reset()
	return ok && (v.Last != value || v.Writing != "")
}

// reset returns the value that the runtime should have of a field; false if the host has nothing
// to do with it.
func (v *Value) reset() (value string, ok bool) {
	switch {
	case len(v.Wishes) > 0:
		return v.Wishes[0].Value, true
	case v.Kubelet != nil:
		return *v.Kubelet, true
	}
	return "", false
}

// Lost notes that the kernel has lost the value of a field, which the runtime got last, and that
// nothing else has overwritten it.
// [Record.Resets] returns it until an update has sent it again.
func (r Record) Lost(t Target, value string) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	v := r.l.object(r.id).value(t)
	if v.Kubelet == nil && len(v.Wishes) == 0 {
		v.Kubelet = &value
	}
	v.Last = ""
	r.l.changed(r.id)
}

// NotReset notes why the runtime could not be sent fields that Resets returned, and reports whether
// that is another reason than the last one. Numbers do not count: they may be the time of the
// error, or the memory in use.
func (r Record) NotReset(fields []Target, err error) (news bool) {
	withoutDigits := func(text string) string {
		return strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return -1
			}
			return c
		}, text)
	}
	r.change(func(o *object) bool {
		for _, t := range fields {
			if v := o.values[t]; v != nil && (v.Failed == nil || withoutDigits(v.Failed.Reason) != withoutDigits(err.Error())) {
				v.Failed, news = &Failure{Reason: err.Error()}, true
			}
		}
		return news
	})
	return news
}

// Rest notes that the runtime has refused fields of an object.
func (r Record) Rest() { r.with(func(o *object) { o.refused = time.Now() }) }

// Rests reports whether the runtime has refused fields of an object less than a minute ago, so that a scan does not
// have them sent again yet.
func (r Record) Rests() (rests bool) {
	r.with(func(o *object) { rests = time.Since(o.refused) < restTime })
	return rests
}

// restTime is how long scans leave fields alone that were refused.
const restTime = time.Minute - time.Second
