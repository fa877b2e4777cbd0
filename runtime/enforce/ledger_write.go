package enforce

import (
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Why says why values are looked at.
type Why uint8

// The reasons.
const (
	// Called: a plugin has asked, or a call may have overwritten values. A repair is no fight, and a file that cannot be
	// read is written.
	Called Why = iota
	Scan       // values may differ without a known cause
	Vacant     // the pod has no sandbox: nothing is written but kubelet's values
)

// Kind says what a write is for.
type Kind uint8

// The kinds.
const (
	First  Kind = iota + 1 // the kernel does not hold the value yet
	Repair                 // it did, and something has overwritten it
	Undo                   // no plugin wants a value any more, and kubelet's comes back
	Fight                  // it is not written: something else has overwritten it too often
)

// Write is a write of a cgroup file that is due.
type Write struct {
	Kind   Kind
	Plugin string   // whose wish it is; empty for Undo
	Hook   abi.Hook // in which it asked
	File   string
	Value  string
	Exact  string // of kubelet's value: see Kernel.Exact
	Found  string // what the kernel holds; empty if that is not known
	Cause  string // the last call or reload before
}

// Held is what the kernel shows of the files of an object, by name. A file that could not be
// read is not in it.
type Held map[string]string

// Kernel says what the kernel makes of values of an object's files.
type Kernel interface {
	// Fit returns the value that the kernel takes at the moment, such as a burst that is not
	// above the quota.
	Fit(file, value string) string
	// FitUndo returns what the kernel takes in the place of kubelet's value: no memory limit that
	// is below what is in use.
	FitUndo(file, kubelet string) string
	// Exact returns what the kernel holds in a form that loses nothing, of a file that shows it
	// rounded; "" of other files. known, if not empty, counts where the kernel has forgotten it.
	Exact(file, known string) string
	// Holds reports whether a file that shows held has the value already: the kernel may round
	// it, and write it in another form.
	Holds(file, value, held string) bool
}

// Files returns the names of an object's cgroup files that hold, or should hold, a value which
// the host writes. They are sorted.
func (r Record) Files() (names []string) {
	r.with(func(o *object) {
		for t, v := range o.values {
			name, file := t.File()
			if _, _, due := v.wanted(); file && due {
				names = append(names, name)
			}
		}
	})
	slices.Sort(names)
	return names
}

// Lock waits until nobody else writes files of the object, and then keeps others from it until
// unlock is called. It reports false if the object has no record.
func (r Record) Lock() (unlock func(), ok bool) {
	r.l.mu.Lock()
	o := r.l.find(r.id)
	r.l.mu.Unlock()
	if o == nil {
		return nil, false
	}
	o.busy <- struct{}{}
	return func() { <-o.busy }, true
}

// Begin compares what the kernel holds with what it is to hold, and returns the writes that are
// due. A file that is another name for a value which is to be undone comes after that, in the next
// Begin. A value that is not the host's is kubelet's from now on. What is about to be written is
// saved before Begin returns. The caller has locked the object, and then calls End.
func (r Record) Begin(held Held, why Why, kernel Kernel) (due []Write) {
	r.change(func(o *object) (save bool) {
		for t, v := range o.values {
			file, ok := t.File()
			if !ok || v.unwritten() && o.undoing(t.same()) { // kubelet's value shows when that is undone
				continue
			}
			found, known := held[file]
			w, next, changed := v.decide(file, found, known, why, kernel)
			*v, save = next, save || changed
			if w.Kind == Fight {
				w.Cause, v.Drift.Cause = o.cause, o.cause
			} else if why != Scan { // a scan has no cause
				w.Cause = o.cause
			}
			if w.Kind != 0 {
				due = append(due, w)
			}
			if value, undo, _ := v.wanted(); undo && known && found == value {
				if v.exactly(file, kernel) {
					delete(o.values, t)
					save = true
				}
			}
			o.dropUnused(t) // a value that became kubelet's own needs no undo
		}
		return save
	})
	slices.SortFunc(due, func(a, b Write) int { return strings.Compare(a.File, b.File) })
	return due
}

// decide compares what is to be in a file with what it shows: found, if that is known. It returns the write that is due, of no
// kind if there is none, and the record from then on. changed says that the record is to be saved first.
func (v Value) decide(file, found string, known bool, why Why, kernel Kernel) (w Write, next Value, changed bool) {
	value, undo, ok := v.wanted()
	unreadable, vacant := !known && why != Called, !undo && why == Vacant
	if !ok || unreadable || vacant {
		return Write{}, v, false
	}
	holds := func(value string) bool { return kernel.Holds(file, value, found) }
	ours := known && v.ours(found, holds)
	var shows bool // the file has the value already
	if undo {
		value = kernel.FitUndo(file, value)
		another := value != *v.Kubelet && !ours // a new value of kubelet's may be just what is in use
		shows = found == value && v.exactly(file, kernel) && !another
	} else {
		value = kernel.Fit(file, value)
		asBefore := v.Read != "" && found == v.Read && v.Last == value
		shows = found == value || holds(value) || asBefore
	}
	if known && shows {
		changed = v.confirm(file, found, value, kernel)
		return Write{}, v, changed
	}
	if known && !ours {
		changed = v.isKubelets(found, kernel.Exact(file, v.Exact))
		if undo && changed { // kubelet has a value of its own by now
			v.Last, v.Read, v.Writing = "", "", ""
			return Write{}, v, true
		}
	}
	failed := v.refusedAt(found)
	if v.Drift.Fight || failed && why == Called {
		return Write{}, v, changed
	}
	w = Write{Kind: First, File: file, Value: value, Exact: v.Exact, Found: found}
	w.Plugin, w.Hook = v.owner()
	switch {
	case undo:
		w.Kind = Undo
	case known && !ours && !v.unwritten():
		w.Kind = Repair
		underWay := v.Writing != "" && v.Last != "" // without Last it is the first write, whose outcome need not be saved
		if v.Drift.overwritten(found, failed || underWay, why) {
			w.Kind = Fight
			return w, v, true
		}
	}
	v.Writing = value
	return w, v, true
}

// exactly reports whether the kernel, which shows kubelet's value, holds it to the last digit.
func (v *Value) exactly(file string, kernel Kernel) bool {
	return v.Exact == "" || kernel.Exact(file, "") == v.Exact
}

// confirm notes that the kernel holds the value, which it shows as found, and reports whether
// the record has changed.
func (v *Value) confirm(file, found, value string, kernel Kernel) (changed bool) {
	if v.unwritten() { // it was there before anybody wrote it
		if v.Kubelet == nil {
			changed = v.isKubelets(found, kernel.Exact(file, v.Exact))
		}
		changed = changed || v.Failed != nil
		v.Failed = nil
		return changed
	}
	changed = v.Last != value || v.Read != found || v.Failed != nil
	v.Last, v.Writing, v.Read, v.Failed = value, "", found, nil
	return changed
}

// Done is the outcome of a Write.
type Done struct {
	Write
	Read string // what the kernel shows now; empty if that could not be read
	Err  error  // why the value was not written

	Skipped bool // there is nothing to write: the container has ended, or another Begin has it due again
	Again   bool // it has failed for the same reason before; set by End
}

// End notes the outcome of writes. One that has failed is due again with the next scan.
func (r Record) End(done []Done) {
	r.change(func(o *object) (save bool) {
		for i := range done {
			d, t := &done[i], File(done[i].File)
			v := o.values[t]
			if v == nil || d.Kind == Fight {
				continue
			}
			v.Writing = ""
			switch {
			case d.Skipped:
				save = save || d.Err != nil
			case d.Err != nil:
				d.Again = v.refusedAt(d.Found) && v.Failed.Reason == d.Err.Error()
				v.Failed, save = &Failure{d.Err.Error(), d.Found, true}, true
			case d.Kind == Undo && len(v.Wishes) == 0 && d.Value == *v.Kubelet:
				delete(o.values, t)
				save = true
			default: // the journal has the value that was to be written
				another := v.Read != "" && v.Read != d.Read
				if v.Failed != nil || d.Read != d.Value || another {
					save = true
				}
				v.Last, v.Read, v.Failed = d.Value, d.Read, nil
			}
		}
		return save
	})
}
