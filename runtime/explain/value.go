package explain

import "github.com/wasmproxy/wasmproxy/runtime/ledger"

// Held is what the kernel holds for a field or file.
type Held struct {
	Value *string // nil: not known
	Meant bool    // it is what the kernel is to hold, as far as that can be compared
}

// OfFile judges a cgroup file.
func (o *Object) OfFile(name string, v *ledger.Value, held Held) Value {
	x := newValue(File, name, v)
	x.Kernel, x.Repairs, x.Found = held.Value, v.Drift.Repairs, v.Drift.Found
	if v.Last != "" {
		x.Written = &v.Last
	}
	x.Condition = o.fileCondition(v, held)
	x.Differs = x.differs(held.Value)
	return x
}

func (o *Object) fileCondition(v *ledger.Value, held Held) Condition {
	switch {
	case held.Value != nil && held.Meant:
		return Condition{}
	case o.over():
		return Condition{}
	case v.Drift.Fight:
		return fight(v)
	case v.Failed != nil:
		return Condition{Failed, v.Failed.Reason}
	case len(v.Wishes) == 0:
		return Condition{Undoing, "no plugin wants a value any more; kubelet's comes back with the next scan"}
	case !o.Running:
		return Condition{Waiting, "it is written when the container starts"}
	case held.Value != nil && v.Last == "":
		return Condition{Waiting, "it is not written yet"}
	case held.Value != nil:
		return Condition{Drift, "something else has overwritten it; a scan writes it again within 90 s"}
	}
	return Condition{} // Object.Unread says why the kernel's value is not known
}

// fight tells of a value that is left alone.
func fight(v *ledger.Value) Condition {
	last := "; no call or reload came before it"
	if v.Drift.Cause != "" {
		last = "; the last call or reload before it was " + v.Drift.Cause
	}
	return Condition{Fight, "something else overwrites it again and again, so it is left alone until the plugin asks again" + last}
}

// over reports whether the object has ended, as its state says: nothing is written to it any more.
func (o *Object) over() bool { return !o.Running && (o.State == "exited" || o.State == "notready") }

// OfField judges a CRI field. clearable says that an update of the container can bring back
// kubelet's value.
func (o *Object) OfField(name string, v *ledger.Value, held Held, clearable bool) Value {
	x := newValue(Field, name, v)
	if x.Kernel = held.Value; v.Last != "" {
		x.Sent = &v.Last
	}
	undo := len(v.Wishes) == 0 && v.Kubelet != nil && *v.Kubelet != v.Last
	due := undo || len(v.Wishes) > 0 && v.Wishes[0].Value != v.Last
	switch {
	case o.over():
	case undo && !clearable:
		x.Condition = Condition{Stays, "no plugin wants it any more; CRI cannot clear it, so it stays until the container restarts"}
	case due && v.Failed != nil:
		x.Condition = Condition{Failed, "the runtime was to get it, and is asked again with the next scan: " + v.Failed.Reason}
	case undo:
		x.Condition = Condition{Undoing, "no plugin wants a value any more; kubelet's comes back with the next scan"}
	case due:
		x.Condition = Condition{Waiting, "the runtime gets it with an update of the proxy's own"}
	case o.Running && held.Value != nil && !held.Meant:
		const detail = "the kernel does not hold what the container runtime was sent last; only the runtime's next update of it sets it again"
		x.Condition = Condition{Drift, detail}
	}
	x.Differs = x.differs(x.Sent)
	return x
}

func newValue(kind Kind, name string, v *ledger.Value) Value {
	x := Value{Kind: kind, Name: name, Kubelet: v.Kubelet, Owner: Kubelet}
	for _, w := range v.Wishes {
		x.Wishes = append(x.Wishes, Wish{Plugin: w.Plugin, Hook: w.Hook.String(), Value: w.Value, Since: w.First()})
	}
	switch {
	case len(x.Wishes) > 0:
		x.Owner = x.Wishes[0].Plugin
	case v.Kubelet == nil:
		x.Owner = Unknown
	}
	return x
}

// differs reports whether the value is another than kubelet's, or is to be. now is what there
// is, nil if that is not known.
func (v *Value) differs(now *string) bool {
	if v.Kubelet == nil || now != nil && *now != *v.Kubelet {
		return len(v.Wishes) > 0 || now != nil
	}
	return len(v.Wishes) > 0 && v.Wishes[0].Value != *v.Kubelet
}
