// Package explain has the form of what the proxy tells about the resources of a pod: of each CRI
// field and cgroup file kubelet's value, what plugins want, what the container runtime was sent,
// and what the kernel holds. It finds pods by their names. It makes no report: package enforce does. Package admin serves
// reports, and `wasmproxy explain` prints them.
package explain

import (
	"slices"
	"time"
)

// Report is what is known of the pods that a name stands for. They are more than one while a pod
// of this name ends and the next one begins.
type Report struct {
	Pods []Pod `json:"pods"`
}

// Pod is a pod with its containers. Its ID is that of its newest sandbox.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Unowned   string `json:"unowned,omitempty"` // why owners are not known of values that the pod had before; empty if they are
	Object
	Containers []Container `json:"containers"` // by name; of each name the newest
}

// Container is a container of a pod.
type Container struct {
	Name string `json:"name"`
	Object
}

// Object is what pods and containers have in common.
type Object struct {
	ID      string  `json:"id"`               // the container runtime's
	State   string  `json:"state"`            // of a pod ready or notready; of a container created, running, exited or unknown
	Cgroup  string  `json:"cgroup,omitempty"` // its path below the cgroup mount; empty if it is not known
	Unread  string  `json:"unread,omitempty"` // why the kernel's values are not known; empty if they are, or if there is no cgroup
	Capped  string  `json:"capped,omitempty"` // why a limit of plugins of a container has no effect; empty if each has
	Values  []Value `json:"values"`           // fields, then files, each by name
	Running bool    `json:"-"`                // it has its cgroup, or, of a pod, may have it
}

// Value is what is known of one CRI field or cgroup file. A pointer is nil where the value is
// not known, or does not apply.
type Value struct {
	Kind      Kind    `json:"kind"`
	Name      string  `json:"name"`              // such as cpu_quota, or cpu.max of a file
	Owner     string  `json:"owner"`             // whose value holds: a plugin's id, Kubelet or Unknown
	Kubelet   *string `json:"kubelet"`           // what kubelet wants, or the file held before its first write
	Wishes    []Wish  `json:"wishes,omitempty"`  // of plugins; the first one holds
	Sent      *string `json:"sent"`              // to the container runtime, of a field
	Written   *string `json:"written,omitempty"` // to the kernel last, of a file
	Kernel    *string `json:"kernel"`            // what the kernel holds now
	Differs   bool    `json:"differs"`           // a plugin wants it, or it is not what kubelet wants
	Condition `json:"condition,omitzero"`
	Repairs   int    `json:"repairs,omitempty"` // how often it was overwritten and written again
	Found     string `json:"found,omitempty"`   // what it was overwritten with last
}

// Kind is what a value is of.
type Kind string

// The kinds.
const (
	Field Kind = "field" // of CRI
	File  Kind = "file"  // of a cgroup
)

// Owners that are no plugins.
const (
	Kubelet = "kubelet" // no plugin wants another value
	Unknown = "unknown" // a plugin may have set it: Pod.Unowned says why that is not known
)

// Wish is what a plugin wants.
type Wish struct {
	Plugin string    `json:"plugin"`
	Hook   string    `json:"hook"` // in which it asked last
	Value  string    `json:"value"`
	Since  time.Time `json:"since"` // when it first asked for this value
}

// Condition says that a value is not as it is meant to be. It is zero if all is well.
type Condition struct {
	State  State  `json:"state"`
	Detail string `json:"detail"` // a sentence for people
}

// State is a kind of Condition.
type State string

// The states.
const (
	Waiting State = "waiting" // the value is not written yet
	Drift   State = "drift"   // the kernel holds another value than it is to hold
	Fight   State = "fight"   // something else overwrites it again and again, and the proxy leaves it alone
	Failed  State = "failed"  // the last write failed
	Stays   State = "stays"   // no plugin wants it any more, but CRI cannot clear it
	Undoing State = "undoing" // no plugin wants it any more, and kubelet's value is yet to come back
)

// Diff leaves of a report the values that differ from kubelet's, or are not as they are meant to
// be.
func (r *Report) Diff() {
	keep := func(o *Object) {
		o.Values = slices.DeleteFunc(o.Values, func(v Value) bool { return !v.Differs && v.Condition == Condition{} })
	}
	for i := range r.Pods {
		p := &r.Pods[i]
		keep(&p.Object)
		for k := range p.Containers {
			keep(&p.Containers[k].Object)
		}
	}
}
