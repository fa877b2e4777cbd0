package enforce

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// ID names an object: a container, or a pod if Container is empty. The cgroup of a pod is
// kubelet's and outlives its sandboxes, so that a pod goes by its UID.
type ID struct {
	Pod       string // UID of the pod
	Container string // the container runtime's ID
}

// Target is a cgroup file or a CRI field of one object. As text it is "file cpu.idle" or
// "field cpu_quota".
type Target string

// File is the target of a cgroup file by its v2 name.
func File(name string) Target { return Target("file " + name) }

// Field is the target of a CRI field.
func Field(name string) Target { return Target("field " + name) }

// File returns the name of a cgroup file, and false for a field.
func (t Target) File() (name string, ok bool) { return strings.CutPrefix(string(t), "file ") }

// Wish is the value that a plugin wants.
type Wish struct {
	Plugin string    `json:"plugin"`
	Hook   abi.Hook  `json:"hook"`
	Value  string    `json:"value"`
	At     time.Time `json:"at"`             // when the plugin asked last
	Since  time.Time `json:"since,omitzero"` // when it first asked for this value, if that was earlier; the ledger sets it
	// Generation is the plugin's when it asked last: each change of its files makes another one. It is no order.
	Generation string `json:"generation,omitempty"`
	// Raises says that the value is a limit of a container for which its pod's is lifted where that is
	// lower. Of a pod it says that the limit is lifted.
	Raises bool `json:"raises,omitempty"`
}

// First returns when the plugin first asked for this value.
func (w Wish) First() time.Time {
	if w.Since.IsZero() {
		return w.At
	}
	return w.Since
}

// Value is what is known of one target. Texts of files are as the kernel shows them.
type Value struct {
	Kubelet *string  `json:"kubelet,omitempty"` // what kubelet wants; nil: not known
	Exact   string   `json:"exact,omitempty"`   // file: Kubelet as Kernel.Exact has it
	Wishes  []Wish   `json:"wishes,omitempty"`  // in the order in which the plugins first asked; the first one holds
	Last    string   `json:"last,omitempty"`    // the last that the kernel or the runtime took; of a field "" if the kernel has lost it
	Read    string   `json:"read,omitempty"`    // file: what the kernel showed then
	Writing string   `json:"writing,omitempty"` // a value that the kernel or the runtime may have taken
	Failed  *Failure `json:"failed,omitempty"`  // why the last write or update failed; nil: it did not
	Drift   Drift    `json:"drift,omitzero"`    // file: what others have done to it
}

// Failure is that of a write or update.
type Failure struct {
	Reason  string `json:"reason"`
	held    string // what the file showed then
	noRetry bool   // it is not written again while it shows that
}

// Ledger holds the records of all objects of a node: for each pod and container, and each of its cgroup files and CRI fields
// that plugins want, the value of kubelet, the wish of each plugin with its hook and time, what the container runtime was
// sent, and what was written to the kernel and read back.
//
// It is bookkeeping: it decides which value holds and which write is due, but opens no cgroup file and calls no
// container runtime. Each change is saved in a state directory before the kernel or the runtime gets a value, so that a
// restart of the proxy loses none. Its methods are safe for concurrent use.
type Ledger struct {
	observer observe.Observer

	mu      sync.Mutex
	pods    map[string]*pod  // by UID
	ignored map[string]error // why lines of the journal were ignored, by the UIDs of pods; "": that is not known

	journal journal
	unsaved error // why the last change could not be saved
}

// pod is the record of a pod and its containers.
type pod struct {
	objects map[string]*object // by container ID; "" is the pod itself
	raising map[string]bool    // the containers with limits for which the pod's may be lifted
	changed time.Time          // zero: read from the journal, and not changed since
}

type object struct {
	group  string // its cgroup, where files were written last
	values map[Target]*Value
	cause  string        // the last call or reload after which values may be overwritten
	called bool          // there was one since the object was looked at, or something else is wanted
	vacant bool          // a pod that has lost its last sandbox; it may have another one since
	busy   chan struct{} // holds one while files of the object are written
	text   []byte        // its line in the journal; nil if it has changed since

	refused time.Time // when the runtime refused its fields last
}

// NewLedger returns an empty ledger whose records are only in memory.
func NewLedger() *Ledger {
	return &Ledger{observer: observe.Discard(), pods: map[string]*pod{}, ignored: map[string]error{}}
}

// Asked is a wish for a target, or the end of one.
type Asked struct {
	Target Target
	Wish
	Sent bool // it is a field, and the runtime is about to be sent the value
	Ends bool // the plugin has withdrawn its wish, which has no value then
	// Has is what the runtime has of a field, which is kubelet's value if that is not known. nil: it is a file.
	Has *string
}

// formerly are the wishes of a plugin that a later one has replaced, or that it has withdrawn; nil: there was none.
type formerly struct {
	wish, same *Wish
	place      int // of wish, if it was withdrawn
}

// Withdraw ends the wishes for which end returns true, and returns the objects that had one.
// Their values are due to be undone.
func (l *Ledger) Withdraw(end func(ID, Target, Wish) bool) (of []ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, o := range l.objects() {
		if o.withdraw(func(t Target, w Wish) bool {
			return (id.Container != "" || !w.Raises) && end(id, t, w) // see Lift
		}) {
			o.called = true
			of = append(of, id)
		}
	}
	slices.SortFunc(of, ID.compare)
	l.changed(of...)
	return of
}

// Wishes calls each for every wish that Withdraw may end. It must not use the ledger.
func (l *Ledger) Wishes(each func(ID, Target, Wish)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, o := range l.objects() {
		for t, v := range o.values {
			for _, w := range v.Wishes {
				if id.Container != "" || !w.Raises {
					each(id, t, w)
				}
			}
		}
	}
}

func (id ID) compare(other ID) int {
	return cmp.Or(strings.Compare(id.Pod, other.Pod), strings.Compare(id.Container, other.Container))
}

// The methods below need the lock.

// objects are those that have records.
func (l *Ledger) objects() iter.Seq2[ID, *object] {
	return func(yield func(ID, *object) bool) {
		for uid, p := range l.pods {
			for container, o := range p.objects {
				if !yield(ID{uid, container}, o) {
					return
				}
			}
		}
	}
}

func (l *Ledger) find(id ID) *object {
	if p := l.pods[id.Pod]; p != nil {
		return p.objects[id.Container]
	}
	return nil
}

func (l *Ledger) object(id ID) *object {
	p := l.pods[id.Pod]
	if p == nil {
		p = &pod{objects: map[string]*object{}, raising: map[string]bool{}}
		l.pods[id.Pod] = p
	}
	o := p.objects[id.Container]
	if o == nil {
		o = &object{values: map[Target]*Value{}, busy: make(chan struct{}, 1)}
		p.objects[id.Container] = o
	}
	return o
}

func (o *object) value(t Target) *Value {
	v := o.values[t]
	if v == nil {
		v = new(Value)
		o.values[t] = v
	}
	return v
}

// changed saves what is known of objects after a change.
func (l *Ledger) changed(ids ...ID) {
	for _, id := range ids {
		if o := l.find(id); o != nil {
			o.text = nil
		}
		if p := l.pods[id.Pod]; p != nil {
			p.changed = time.Now()
			l.prune(id)
		}
	}
	if len(ids) > 0 {
		l.save(ids...)
	}
}

// prune drops an object without records, and its pod if that was the last one. Else the pod's index follows it.
func (l *Ledger) prune(id ID) {
	p, o := l.pods[id.Pod], l.find(id)
	if delete(p.raising, id.Container); o == nil || len(o.values) == 0 {
		delete(p.objects, id.Container)
	} else if id.Container != "" {
		for _, v := range o.values {
			if v.mayRaise() {
				p.raising[id.Container] = true
			}
		}
	}
	if len(p.objects) == 0 {
		delete(l.pods, id.Pod)
	}
}

func (l *Ledger) remove(id ID) {
	ids := []ID{id}
	if id.Container == "" {
		delete(l.ignored, id.Pod)
		ids = l.of(id.Pod)
	}
	ids = slices.DeleteFunc(ids, func(id ID) bool { return l.find(id) == nil })
	for _, id := range ids {
		delete(l.pods[id.Pod].objects, id.Container)
	}
	l.changed(ids...)
}
