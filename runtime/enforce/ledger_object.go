package enforce

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// forgetAfter is how long the record of a pod is kept that is not known to exist: it may be
// about to be made.
const forgetAfter = 10 * time.Minute

// Retain drops the records of objects that are gone: those for which live is false. A pod that
// is not live may be in the making; its record is kept for ten minutes after its last change. After
// that it is kept as long as its cgroup exists, as after [Record.Vacate].
func (l *Ledger) Retain(live func(ID) bool, exists func(group string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, p := range l.pods {
		if live(ID{Pod: uid}) {
			removeEnded(l, uid, live)
		} else if time.Since(p.changed) > forgetAfter {
			l.vacate(uid, live, exists)
		}
	}
	maps.DeleteFunc(l.ignored, func(uid string, _ error) bool {
		return uid != "" && l.pods[uid] == nil && !live(ID{Pod: uid})
	})
}

func (l *Ledger) vacate(uid string, live func(ID) bool, exists func(group string) bool) {
	id := ID{Pod: uid}
	switch o := l.find(id); {
	case l.pods[uid] == nil:
	case o == nil || !exists(o.group):
		l.remove(id)
	default:
		o.vacant = true
		removeEnded(l, uid, live)
	}
}

// removeEnded removes the containers of a pod that are not live.
func removeEnded(l *Ledger, uid string, live func(ID) bool) {
	for container := range l.pods[uid].objects {
		if container != "" && !live(ID{uid, container}) {
			l.remove(ID{uid, container})
		}
	}
}

// Objects returns the objects that have records.
func (l *Ledger) Objects() (all []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.objects() {
		all = append(all, id)
	}
	slices.SortFunc(all, ID.compare)
	return all
}

// Len returns how many objects have records, and how many values these have that plugins want.
func (l *Ledger) Len() (objects, values int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.objects() {
		objects++
		for _, v := range o.values {
			values += min(len(v.Wishes), 1)
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
	for _, o := range l.objects() {
		for _, v := range o.values {
			if v.fails() {
				plugin, _ := v.owner()
				all[plugin]++
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
	for id := range l.objects() {
		switch {
		case container == "":
		case id.Container == container:
			return id, true
		case strings.HasPrefix(id.Container, container):
			found = id
			n++
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
