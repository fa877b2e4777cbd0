package enforce

import "slices"

// Raised is a limit of a container that a plugin has set, and for which the pod's may be lifted.
type Raised struct {
	Container string // the container runtime's ID
	Target    Target
	Wish      Wish
}

// Raised returns those of the containers of a pod.
func (l *Ledger) Raised(uid string) (all []Raised) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pods[uid]
	if p == nil {
		return nil
	}
	for container := range p.raising {
		for t, v := range p.objects[container].values {
			if w := v.effective(t); w.Raises {
				all = append(all, Raised{container, t, w})
			}
		}
	}
	return all
}

// mayRaise tells the few values that Raised has to look at from the many that it need not.
func (v *Value) mayRaise() bool {
	return slices.ContainsFunc(v.Wishes, func(w Wish) bool { return w.Raises })
}

// effective is the wish that the container runs with: of a file the first one, of a field the one
// that was sent last, or is about to be sent again.
func (v *Value) effective(t Target) (w Wish) {
	if _, file := t.File(); (file || v.Last == "") && len(v.Wishes) > 0 {
		return v.Wishes[0]
	}
	for _, wish := range v.Wishes {
		if wish.Value == v.Last && !wish.At.Before(w.At) {
			w = wish
		}
	}
	return w
}

// Lifted returns the files of a pod's limits that are lifted.
func (r Record) Lifted() (files []string) {
	r.with(func(o *object) {
		for t, v := range o.values {
			if file, ok := t.File(); ok && v.mayRaise() {
				files = append(files, file)
			}
		}
	})
	return files
}

// Lift sets what the plugins whose containers have higher limits than a pod want of the pod's, in the
// place of what they wanted before. A wish without a plugin ends it. Withdraw does not: the pod's limit
// follows those of its containers.
func (l *Ledger) Lift(uid, file string, wish Wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, t := ID{Pod: uid}, File(file)
	if wish.Plugin == "" {
		if o := l.find(id); o != nil && o.values[t] != nil && o.values[t].mayRaise() {
			o.values[t].lift(nil)
			o.dropUnused(t)
			l.changed(id)
		}
		return
	}
	wish.Raises, wish.Since = true, wish.At
	v := l.object(id).value(t)
	if len(v.Wishes) > 0 && v.Wishes[0].Plugin == wish.Plugin && v.Wishes[0].Value == wish.Value {
		return
	}
	v.lift([]Wish{wish})
	l.changed(id)
}

func (v *Value) lift(wishes []Wish) {
	v.Wishes = slices.Clip(wishes)
	v.renewed()
}
