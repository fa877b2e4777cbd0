package enforce

import (
	"cmp"
	"slices"
)

// Record is the record of one object. There may be none: then nothing is known of the object, and nothing wanted. Its
// methods are the ledger's for the object.
type Record struct {
	l  *Ledger
	id ID
}

// Record returns the record of an object.
func (l *Ledger) Record(id ID) Record { return Record{l, id} }

// with runs do with the lock and what is known of the object, unless that is nothing.
func (r Record) with(do func(o *object)) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if o := r.l.find(r.id); o != nil {
		do(o)
	}
}

// change is with, and saves what do says to have changed.
func (r Record) change(do func(o *object) (changed bool)) {
	r.with(func(o *object) {
		if do(o) {
			r.l.changed(r.id)
		}
	})
}

// Move gives the record of a container to another pod: the ledger's name of its pod has changed.
// A record that the container has there already is of later calls, and joined with it.
func (r Record) Move(pod string) {
	if pod == r.id.Pod {
		return
	}
	r.with(func(o *object) {
		to := ID{pod, r.id.Container}
		if later := r.l.find(to); later != nil {
			later.group = cmp.Or(later.group, o.group)
			for t, v := range o.values {
				if newer := later.values[t]; newer != nil {
					v.renew(t, newer)
				}
				later.values[t] = v
			}
		} else {
			r.l.object(to)
			r.l.pods[pod].objects[r.id.Container] = o
		}
		delete(r.l.pods[r.id.Pod].objects, r.id.Container)
		r.l.changed(to, r.id) // in this order: a proxy that is killed meanwhile has the record twice, and moves it again
	})
}

// Vacate notes that the last sandbox of a pod is gone, and drops the records of its containers
// that are not live. kubelet may make another sandbox in the same cgroup, so that the pod's own
// record ends with the cgroup: at once if exists is false of it, else with [Record.Remove].
func (r Record) Vacate(live func(ID) bool, exists func(group string) bool) {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.vacate(r.id.Pod, live, exists)
}

// Vacant reports whether an object is a pod that has lost its last sandbox. It may have another one
// since.
func (r Record) Vacant() (vacant bool) {
	r.with(func(o *object) { vacant = o.vacant })
	return vacant
}

// Has reports whether an object has a record.
func (r Record) Has() (has bool) {
	r.with(func(*object) { has = true })
	return has
}

// Values returns a copy of what is known of the object; nil if it has no record.
func (r Record) Values() (all map[Target]Value) {
	r.with(func(o *object) {
		all = make(map[Target]Value, len(o.values))
		for t, v := range o.values {
			c := *v
			c.Wishes = slices.Clone(v.Wishes)
			all[t] = c
		}
	})
	return all
}

// Note remembers a call or reload after which values of the object may be overwritten. Its name is told if there is a fight.
func (r Record) Note(cause string) {
	r.with(func(o *object) { o.cause, o.called = cause, true })
}

// Look returns why an object is looked at: Called once after something was asked or noted, else Scan.
func (r Record) Look() Why {
	why := Scan
	r.with(func(o *object) {
		if o.called {
			why, o.called = Called, false
		}
	})
	return why
}

// Unsettled reports whether something of an object is yet to be written or sent, as far as the record tells.
func (r Record) Unsettled() (is bool) {
	r.with(func(o *object) {
		for t, v := range o.values {
			_, file := t.File()
			unsent := !file && v.unsent()
			if v.Failed != nil || len(v.Wishes) == 0 || unsent {
				is = true
			}
		}
	})
	return is
}

// Located notes the cgroup of an object, so that its values can be undone when nothing else
// tells any more where it is. It is saved with the object's next change.
func (r Record) Located(group string) {
	r.with(func(o *object) { o.group = group })
}

// Group returns what Located noted; "" if nothing.
func (r Record) Group() (group string) {
	r.with(func(o *object) { group = o.group })
	return group
}

// Ask notes what plugins want of an object, and saves it. A later wish of a plugin for the same
// target replaces its earlier one, and keeps its place. revert takes back what this call has
// noted, if a plugin has asked nothing else since.
func (r Record) Ask(asked ...Asked) (revert func()) {
	if len(asked) == 0 {
		return func() {}
	}
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	o := r.l.object(r.id)
	o.called = true
	former := make([]formerly, len(asked))
	for i, a := range asked {
		if a.Ends {
			former[i].wish, former[i].place = o.end(a.Target, a.Plugin)
			continue
		}
		former[i].same, _ = o.end(a.Target.same(), a.Plugin)
		v := o.value(a.Target)
		if a.Has != nil && v.Kubelet == nil {
			v.Kubelet, v.Last = a.Has, *a.Has
		}
		former[i].wish = v.ask(a.Wish)
		if a.Sent {
			v.sending(a.Value)
		}
	}
	r.l.changed(r.id)
	return func() {
		r.l.mu.Lock()
		defer r.l.mu.Unlock()
		o := r.l.object(r.id) // a wish that was withdrawn may have been all that there was
		o.called = true
		for i, a := range slices.Backward(asked) {
			was := former[i]
			if a.Ends && was.wish != nil {
				if v := o.value(a.Target); v.wishOf(a.Plugin) < 0 { // it has no other one by now
					v.Wishes = slices.Insert(v.Wishes, min(was.place, len(v.Wishes)), *was.wish)
					v.renewed()
				}
			}
			if a.Ends {
				continue
			}
			v := o.values[a.Target]
			if v != nil && v.revert(a.Wish, was.wish) && was.same != nil {
				o.value(a.Target.same()).ask(*was.same)
			}
			if v != nil && a.Sent {
				v.Writing = ""
			}
			o.dropUnused(a.Target)
		}
		r.l.changed(r.id)
	}
}

// Owner returns the wish that holds for a target; false if no plugin has one. With of it is that among the plugins for which
// this returns true.
func (r Record) Owner(target Target, of ...func(plugin string) bool) (owner Wish, ok bool) {
	r.with(func(o *object) {
		if v := o.values[target]; v != nil {
			i := slices.IndexFunc(v.Wishes, func(w Wish) bool { return len(of) == 0 || of[0](w.Plugin) })
			if ok = i >= 0; ok {
				owner = v.Wishes[i]
			}
		}
	})
	return owner, ok
}

// Remove drops the record of an object that is gone; that of a pod with its containers'.
func (r Record) Remove() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	r.l.remove(r.id)
}
