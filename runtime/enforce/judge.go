package enforce

import "github.com/wasmproxy/wasmproxy/runtime/explain"

// shown is what the kernel holds for a field or file.
type shown struct {
	value *string // nil: not known
	meant bool    // it is what the kernel is to hold, as far as that can be compared
}

// judgeFile explains the value of a cgroup file of an object.
func judgeFile(o *explain.Object, name string, v *Value, held shown) explain.Value {
	x := newJudged(explain.File, name, v)
	x.Kernel, x.Repairs, x.Found = held.value, v.Drift.Repairs, v.Drift.Found
	if v.Last != "" {
		x.Written = &v.Last
	}
	const fight = "something else overwrites it again and again, so it is left alone until the plugin asks again; "
	switch {
	case held.value != nil && held.meant, over(o):
	case v.Drift.Fight && v.Drift.Cause == "":
		x.Condition = explain.Condition{State: explain.Fight, Detail: fight + "no call or reload came before it"}
	case v.Drift.Fight:
		x.Condition = explain.Condition{State: explain.Fight, Detail: fight + "the last call or reload before it was " + v.Drift.Cause}
	case v.Failed != nil:
		x.Condition = explain.Condition{State: explain.Failed, Detail: v.Failed.Reason}
	case len(v.Wishes) == 0:
		x.Condition = explain.Condition{State: explain.Undoing, Detail: undoing}
	case !o.Running:
		x.Condition = explain.Condition{State: explain.Waiting, Detail: "it is written when the container starts"}
	case held.value != nil && v.Last == "":
		x.Condition = explain.Condition{State: explain.Waiting, Detail: "it is not written yet"}
	case held.value != nil: // without it Object.Unread says why
		x.Condition = explain.Condition{State: explain.Drift, Detail: "something else has overwritten it; a scan writes it again within 100 s"}
	}
	x.Differs = differs(&x, held.value)
	return x
}

// undoing is why a value is there that nobody wants.
const undoing = "no plugin wants a value any more; kubelet's comes back with the next scan"

// over reports whether the object has ended, as its state says: nothing is written to it any more.
func over(o *explain.Object) bool {
	return !o.Running && (o.State == "exited" || o.State == "notready")
}

// judgeField explains the value of a CRI field of an object. clearable says that an update of the container can bring back
// kubelet's value.
func judgeField(o *explain.Object, name string, v *Value, held shown, clearable bool) explain.Value {
	x := newJudged(explain.Field, name, v)
	if x.Kernel = held.value; v.Last != "" {
		x.Sent = &v.Last
	}
	undo := len(v.Wishes) == 0 && v.Kubelet != nil && *v.Kubelet != v.Last
	due := undo || len(v.Wishes) > 0 && v.Wishes[0].Value != v.Last
	switch {
	case over(o):
	case undo && !clearable:
		x.Condition = explain.Condition{State: explain.Stays, Detail: "no plugin wants it any more; CRI cannot clear it, so it stays until the container restarts"}
	case due && v.Failed != nil:
		x.Condition = explain.Condition{State: explain.Failed, Detail: "the runtime was to get it, and is asked again with the next scan: " + v.Failed.Reason}
	case undo:
		x.Condition = explain.Condition{State: explain.Undoing, Detail: undoing}
	case due:
		x.Condition = explain.Condition{State: explain.Waiting, Detail: "the runtime gets it with an update of the proxy's own"}
	case o.Running && held.value != nil && !held.meant:
		const detail = "the kernel does not hold what the container runtime was sent last; only the runtime's next update of it sets it again"
		x.Condition = explain.Condition{State: explain.Drift, Detail: detail}
	}
	x.Differs = differs(&x, x.Sent)
	return x
}

func newJudged(kind explain.Kind, name string, v *Value) explain.Value {
	x := explain.Value{Kind: kind, Name: name, Kubelet: v.Kubelet, Owner: explain.Kubelet}
	for _, w := range v.Wishes {
		x.Wishes = append(x.Wishes, explain.Wish{Plugin: w.Plugin, Hook: w.Hook.String(), Value: w.Value, Since: w.First()})
	}
	switch {
	case len(x.Wishes) > 0:
		x.Owner = x.Wishes[0].Plugin
	case v.Kubelet == nil:
		x.Owner = explain.Unknown
	}
	return x
}

// differs reports whether the value is another than kubelet's, or is to be. now is what there
// is, nil if that is not known.
func differs(v *explain.Value, now *string) bool {
	if v.Kubelet == nil || now != nil && *now != *v.Kubelet {
		return len(v.Wishes) > 0 || now != nil
	}
	return len(v.Wishes) > 0 && v.Wishes[0].Value != *v.Kubelet
}
