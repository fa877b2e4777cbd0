package ledger

import "slices"

// Raised is a limit of a container that a plugin has set, and with which the pod's is raised.
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
	for container, o := range p.objects {
		for t, v := range o.values {
			if container != "" && v.mayRaise() {
				if w := v.effective(t); w.Raises {
					all = append(all, Raised{container, t, w})
				}
			}
		}
	}
	return all
}

// mayRaise tells the few values that effective has to look at from the many that it need not.
func (v *Value) mayRaise() bool {
	for i := range v.Wishes {
		if v.Wishes[i].Raises {
			return true
		}
	}
	return false
}

// effective is the wish that the container runs with: of a file the first one, of a field the one
// that was sent last, or is about to be sent again.
func (v *Value) effective(t Target) (w Wish) {
	if _, file := t.File(); (file || v.Lost) && len(v.Wishes) > 0 {
		return v.Wishes[0]
	}
	for _, wish := range v.Wishes {
		if wish.Value == v.Sent && !wish.At.Before(w.At) {
			w = wish
		}
	}
	return w
}

// Raises reports whether plugins add to a limit of a pod.
func (l *Ledger) Raises(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(ID{Pod: uid})
	if o == nil {
		return false
	}
	for _, v := range o.values {
		if len(v.Wishes) > 0 && v.Wishes[0].Raises {
			return true
		}
	}
	return false
}

// Raise sets what the plugins that have raised limits of a pod's containers add to a limit of the
// pod, in the place of what they added before. A wish without a plugin ends it. Withdraw does not:
// the pod's limit follows those of its containers.
func (l *Ledger) Raise(uid, file string, wish Wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := ID{Pod: uid}
	t := File(file)
	if wish.Plugin == "" {
		if o := l.find(id); o != nil && o.values[t] != nil && len(o.values[t].Wishes) > 0 {
			o.values[t].raise(nil)
			o.tidy(t)
			l.changed(id)
		}
		return
	}
	wish.Raises, wish.Since = true, wish.At
	v := l.object(id).value(t)
	if len(v.Wishes) > 0 && v.Wishes[0].Plugin == wish.Plugin && v.Wishes[0].Value == wish.Value {
		return
	}
	v.raise([]Wish{wish})
	l.changed(id)
}

// Follow notes kubelet's limit of a pod after an update of a container. next, which must not use the
// ledger, gets that limit and Value.Sum, and returns the new ones.
func (l *Ledger) Follow(uid, file string, next func(kubelet string, sum int64) (string, int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := ID{Pod: uid}
	if o := l.find(id); o != nil && o.values[File(file)] != nil && o.values[File(file)].Kubelet != nil {
		v := o.values[File(file)]
		kubelet, sum := next(*v.Kubelet, v.Sum)
		if v.isKubelets(kubelet, v.Exact) || sum != v.Sum {
			v.Sum = sum
			l.changed(id)
		}
	}
}

func (v *Value) raise(wishes []Wish) {
	v.Wishes = slices.Clip(wishes)
	v.Fight, v.Repairs, v.stuck = false, 0, nil
}
