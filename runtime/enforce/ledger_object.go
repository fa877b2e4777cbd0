package enforce

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// forgetAfter is how long the record of a pod is kept that is not known to exist: it may be
// objectOf to be made.
const forgetAfter = 10 * time.Minute

// Retain drops the records of objects that are gone: those for which live is false. A pod that
// is not live may be in the making; its record is kept for ten minutes after its last change. After
// that it is kept as long as its cgroup exists, as after [Ledger.Vacate].
func (l *Ledger) Retain(live func(ID) bool, exists func(group string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, p := range l.pods {
		if id := (ID{Pod: uid}); !live(id) {
			if time.Since(p.changed) > forgetAfter {
				l.vacate(id, live, exists)
			}
			continue
		}
		for container := range p.objects {
			if container != "" && !live(ID{uid, container}) {
				l.remove(ID{uid, container})
			}
		}
	}
	maps.DeleteFunc(l.ignored, func(uid string, _ error) bool {
		return uid != "" && l.pods[uid] == nil && !live(ID{Pod: uid})
	})
}

// Move gives the record of a container to another pod: the ledger's name of its pod has changed.
// A record that the container has there already is of later calls, and joined with it.
func (l *Ledger) Move(id ID, pod string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil || pod == id.Pod {
		return
	}
	to := ID{pod, id.Container}
	if later := l.find(to); later != nil {
		later.join(o)
	} else {
		l.object(to)
		l.pods[pod].objects[id.Container] = o
	}
	delete(l.pods[id.Pod].objects, id.Container)
	l.changed(to, id) // in this order: a proxy that is killed meanwhile has the record twice, and moves it again
}

// join adds what an earlier record of the same object knows.
func (o *object) join(earlier *object) {
	o.group = cmp.Or(o.group, earlier.group)
	for t, v := range earlier.values {
		if later := o.values[t]; later != nil {
			v.renew(t, later)
		}
		o.values[t] = v
	}
}

// Vacate notes that the last sandbox of a pod is gone, and drops the records of its containers
// that are not live. kubelet may make another sandbox in the same cgroup, so that the pod's own
// record ends with the cgroup: at once if exists is false of it, else with [Ledger.Remove].
func (l *Ledger) Vacate(id ID, live func(ID) bool, exists func(group string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vacate(id, live, exists)
}

func (l *Ledger) vacate(id ID, live func(ID) bool, exists func(group string) bool) {
	p := l.pods[id.Pod]
	if p == nil {
		return
	}
	o := p.objects[""]
	if o == nil || !exists(o.group) {
		l.remove(id)
		return
	}
	o.vacant = true
	for container := range p.objects {
		if container != "" && !live(ID{id.Pod, container}) {
			l.remove(ID{id.Pod, container})
		}
	}
}

// Vacant reports whether an object is a pod that has lost its last sandbox. It may have another one
// since.
func (l *Ledger) Vacant(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	return o != nil && o.vacant
}

// Objects returns the objects that have records.
func (l *Ledger) Objects() (all []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, p := range l.pods {
		for container := range p.objects {
			all = append(all, ID{uid, container})
		}
	}
	slices.SortFunc(all, ID.compare)
	return all
}

// Len returns how many objects have records, and how many values these have that plugins want.
func (l *Ledger) Len() (objects, values int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pods {
		objects += len(p.objects)
		for _, o := range p.objects {
			for _, v := range o.values {
				values += min(len(v.Wishes), 1)
			}
		}
	}
	return objects, values
}

// NotHeld counts the values that do not hold: they could not be written, or are left alone since something
// else overwrites them. The keys are the plugins that want them; "" is of kubelet's values.
func (l *Ledger) NotHeld() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]int{}
	for _, p := range l.pods {
		for _, o := range p.objects {
			for _, v := range o.values {
				if v.Drift.Fight || v.Failed != nil {
					plugin, _ := v.owner()
					all[plugin]++
				}
			}
		}
	}
	return all
}

// Find returns the container with a record whose ID is, or begins with, this one; false if there is
// none, or more than one.
func (l *Ledger) Find(container string) (found ID, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for uid, p := range l.pods {
		for id := range p.objects {
			if id == container && id != "" {
				return ID{uid, id}, true
			}
			if container != "" && strings.HasPrefix(id, container) {
				found = ID{uid, id}
				n++
			}
		}
	}
	return found, n == 1
}

// Empty reports whether no object has a record.
func (l *Ledger) Empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods) == 0
}

// Has reports whether an object has a record.
func (l *Ledger) Has(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(id) != nil
}

// Of returns the objects of one pod that have records, the pod first.
func (l *Ledger) Of(uid string) []ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(uid)
}

func (l *Ledger) of(uid string) (all []ID) {
	if p := l.pods[uid]; p != nil {
		for _, container := range slices.Sorted(maps.Keys(p.objects)) {
			all = append(all, ID{uid, container})
		}
	}
	return all
}

// Record returns a copy of what is known of an object; nil if it has no record.
func (l *Ledger) Record(id ID) map[Target]Value {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return nil
	}
	all := make(map[Target]Value, len(o.values))
	for t, v := range o.values {
		c := *v
		c.Wishes = slices.Clone(v.Wishes)
		all[t] = c
	}
	return all
}

// Note remembers a call or reload after which values of the object may be overwritten. Its name is told if there is a fight.
func (l *Ledger) Note(id ID, cause string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.find(id); o != nil {
		o.cause, o.called = cause, true
	}
}

// Look returns why an object is looked at: Called once after something was asked or noted, else Scan.
func (l *Ledger) Look(id ID) Why {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil || !o.called {
		return Scan
	}
	o.called = false
	return Called
}

// Unsettled reports whether something of an object is yet to be written or sent, as far as the record tells.
func (l *Ledger) Unsettled(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.find(id)
	if o == nil {
		return false
	}
	for t, v := range o.values {
		_, file := t.File()
		unsent := !file && v.unsent()
		if v.Failed != nil || len(v.Wishes) == 0 || unsent {
			return true
		}
	}
	return false
}

// Located notes the cgroup of an object, so that its values can be undone when nothing else
// tells any more where it is. It is saved with the object's next change.
func (l *Ledger) Located(id ID, group string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.find(id); o != nil {
		o.group = group
	}
}

// Group returns what Located noted; "" if nothing.
func (l *Ledger) Group(id ID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.find(id); o != nil {
		return o.group
	}
	return ""
}
