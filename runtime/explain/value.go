package explain

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// OfFile judges a cgroup file. kernel is what it holds, nil if that is not known.
func (o *Object) OfFile(name string, v *ledger.Value, kernel *string) Value {
	x := newValue(File, name, v)
	x.Kernel, x.Repairs, x.Found = kernel, v.Repairs, v.Found
	if v.Written != "" {
		x.Written = &v.Written
	}
	x.Condition = o.fileCondition(v, kernel)
	x.Differs = x.differs(kernel)
	return x
}

func (o *Object) fileCondition(v *ledger.Value, kernel *string) Condition {
	switch {
	case kernel != nil && v.Holds(*kernel):
		return Condition{}
	case v.Fight:
		last := ""
		if v.Cause != "" {
			last = "; the last call or reload before it was " + v.Cause
		}
		return Condition{Fight, "something else overwrites it again and again, so it is left alone until the plugin asks again" + last}
	case v.Failed != "":
		return Condition{Failed, v.Failed}
	case len(v.Wishes) == 0:
		return Condition{Undoing, "no plugin wants a value any more; kubelet's comes back with the next scan"}
	case !o.Running:
		return Condition{Waiting, "it is written when the container starts"}
	case kernel != nil && v.Written == "":
		return Condition{Waiting, "it is not written yet"}
	case kernel != nil:
		return Condition{Drift, "something else has overwritten it; the next scan writes it again"}
	}
	return Condition{} // Object.Unread says why the kernel's value is not known
}

// OfField judges a CRI field. kernel is what the kernel holds for it, nil if that is not known.
// clearable says that an update of the container can bring back kubelet's value. period is
// that of a CPU quota in microseconds, 0 if it is not known.
func (o *Object) OfField(name string, v *ledger.Value, kernel *string, clearable bool, period int64) Value {
	x := newValue(Field, name, v)
	if x.Kernel = kernel; !v.Lost {
		x.Sent = &v.Sent
	}
	undo := len(v.Wishes) == 0 && v.Kubelet != nil && *v.Kubelet != v.Sent
	switch {
	case undo && !clearable:
		x.Condition = Condition{Stays, "no plugin wants it any more; CRI cannot clear it, so it stays until the container restarts"}
	case (undo || v.Lost) && v.Failed != "":
		x.Condition = Condition{Failed, "the runtime was to get it again, and is asked again with the next scan: " + v.Failed}
	case v.Lost:
		x.Condition = Condition{Drift, "the kernel has lost it; the next scan has the runtime set it again"}
	case undo:
		x.Condition = Condition{Undoing, "no plugin wants a value any more; kubelet's comes back with the next scan"}
	case o.Running && kernel != nil && !alike(name, v.Sent, *kernel, period):
		x.Condition = Condition{Drift, "the kernel does not hold what the container runtime was sent last"}
	}
	x.Differs = x.differs(x.Sent)
	return x
}

func newValue(kind Kind, name string, v *ledger.Value) Value {
	x := Value{Kind: kind, Name: name, Kubelet: v.Kubelet, Owner: Kubelet}
	for _, w := range v.Wishes {
		x.Wishes = append(x.Wishes, Wish{Plugin: w.Plugin, Hook: w.Hook.String(), Value: w.Value, Since: w.Since})
	}
	if len(x.Wishes) > 0 {
		x.Owner = x.Wishes[0].Plugin
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

// notCompared are the fields that the kernel holds in a form of its own. So are those of unified.
var notCompared = []string{"cpu_shares", "cpuset_cpus", "cpuset_mems"}

// alike reports whether the kernel holds what the runtime was sent. It shows quotas with the
// rounding of systemd, which is 10 ms in a second, and memory in whole pages.
func alike(name, sent, kernel string, period int64) bool {
	if sent == kernel || slices.Contains(notCompared, name) || strings.HasPrefix(name, "unified[") {
		return true
	}
	s, errSent := strconv.ParseInt(sent, 10, 64)
	k, errKernel := strconv.ParseInt(kernel, 10, 64)
	if errSent != nil || errKernel != nil || min(s, k) < 0 {
		return s < 0 && k < 0
	}
	switch name {
	case "cpu_quota":
		return max(s-k, k-s) <= cmp.Or(period, 100_000)/100
	case "memory_limit_in_bytes", "memory_swap_limit_in_bytes":
		return max(s-k, k-s) < int64(os.Getpagesize())
	}
	return false
}
