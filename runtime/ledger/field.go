package ledger

import "slices"

// Update is an update of the CRI fields of an object that the container runtime has accepted.
// Fields are those of the ABI, each value as text.
type Update struct {
	Kubelet map[Target]string // what kubelet asked for; empty if kubelet did not ask
	Before  map[Target]string // what the runtime had before
	Asked   []Asked           // what plugins asked for
	Sent    map[Target]string // what the runtime was sent
}

// Updated notes an update of fields, and saves it. The wish of a plugin ends when kubelet sends
// another value and the plugin does not repeat its wish. A value that kubelet sends back as the
// runtime got it last is no other value.
func (l *Ledger) Updated(id ID, u Update) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.find(id) == nil && len(u.Asked) == 0 {
		return
	}
	o := l.object(id)
	for t, value := range u.Kubelet {
		if v := o.values[t]; v != nil {
			v.hear(t, value, u.Asked)
		}
	}
	for _, a := range u.Asked {
		v := o.value(a.Target)
		if v.Kubelet == nil {
			if value, ok := u.Kubelet[a.Target]; ok {
				v.Kubelet = &value
			} else if value, ok := u.Before[a.Target]; ok {
				v.Kubelet = &value
			}
		}
		v.ask(a.Wish)
	}
	for t, value := range u.Sent {
		if v := o.values[t]; v != nil {
			if v.Sent = value; len(v.Wishes) == 0 && v.Kubelet != nil && *v.Kubelet == value {
				delete(o.values, t)
			}
		}
	}
	l.changed(id.Pod)
}

// hear takes a value that kubelet sends.
func (v *Value) hear(t Target, value string, asked []Asked) {
	if v.Kubelet != nil && *v.Kubelet == value || v.Sent != "" && v.Sent == value {
		return
	}
	v.Kubelet = &value
	v.Wishes = slices.DeleteFunc(v.Wishes, func(w Wish) bool {
		return !slices.ContainsFunc(asked, func(a Asked) bool { return a.Target == t && a.Plugin == w.Plugin })
	})
}

// Resets returns the fields that no plugin wants any more, and that the runtime still has
// another value for than kubelet: what kubelet wants of each.
func (l *Ledger) Resets(id ID) (kubelet map[Target]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return nil
	}
	for t, v := range o.values {
		if _, file := t.File(); file || len(v.Wishes) > 0 || v.Kubelet == nil || v.Sent == *v.Kubelet {
			continue
		}
		if kubelet == nil {
			kubelet = map[Target]string{}
		}
		kubelet[t] = *v.Kubelet
	}
	return kubelet
}
