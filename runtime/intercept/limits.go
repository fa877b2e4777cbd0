package intercept

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// raisePod has the limits of a pod's cgroup be kubelet's with what plugins have added to those of
// its live containers. coming are limits that a container is about to get. On the way up it is
// called before the container has its limit, on the way down after that.
func (i *interceptor) raisePod(ctx context.Context, uid string, coming ...ledger.Raised) {
	if i.sumLimits(ctx, uid, coming...) {
		pod, _ := i.podOf(uid)
		i.carryOut(ctx, ledger.ID{Pod: uid}, crifield.Object{Pod: pod}, ledger.Expected)
	}
}

// sumLimits has the ledger note what plugins add to the limits of a pod, and reports whether they
// do or did. While the store lacks one of the containers, as before it is filled, or knows it by a
// list alone, what limits kubelet gave it is not known: what plugins add stays as it is.
func (i *interceptor) sumLimits(ctx context.Context, uid string, coming ...ledger.Raised) bool {
	if i.Cgroups.Version() != 2 {
		return false
	}
	raised := append(i.Ledger.Raised(uid), coming...)
	if len(raised) == 0 && !i.Ledger.Raises(uid) {
		return false
	}
	if slices.ContainsFunc(raised, func(r ledger.Raised) bool { return !i.described(r.Container) }) {
		return true
	}
	raised = slices.DeleteFunc(raised, func(r ledger.Raised) bool { return !i.live(ctx, r.Container) })
	record := i.Ledger.Record(ledger.ID{Pod: uid})
	for _, file := range []string{rules.CPUMax, rules.MemoryMax} {
		held := ""
		if known := record[ledger.File(file)].Kubelet; known != nil {
			held = *known
		} else if group, err := i.podGroup(ctx, uid); err == nil && len(raised) > 0 {
			held, _ = i.Cgroups.Get(group, file)
		}
		i.Ledger.Raise(uid, file, i.added(file, uid, rules.ParseLimit(file, held), raised))
	}
	return true
}

// podFollows reports whether a scan that leaves out a pod's containers looks at the limits that they
// raise: it does if the pod has a record, which it has not while kubelet limits nothing.
func (i *interceptor) podFollows(uid string) bool {
	return i.Ledger.Has(ledger.ID{Pod: uid}) || len(i.Ledger.Raised(uid)) == 0
}

func (i *interceptor) podGroup(ctx context.Context, uid string) (string, error) {
	pod, ok := i.podOf(uid)
	if !ok {
		return "", errNoGroup
	}
	return i.group(ctx, crifield.Object{Pod: pod})
}

// described reports whether the store has a container's resources, or knows that it has ended.
func (i *interceptor) described(id string) bool {
	c, known := i.Store.Container(id)
	return known && (!c.ByListAlone() || c.State == runtimeapi.ContainerState_CONTAINER_EXITED)
}

// live reports whether a container runs or is about to. That one has exited by itself shows in
// the kernel alone.
func (i *interceptor) live(ctx context.Context, id string) bool {
	c, _ := i.Store.Container(id)
	switch c.State {
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return false
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return true
	}
	group, err := i.containerGroup(ctx, crifield.ContainerOf(c))
	return err != nil || i.Cgroups.Exists(group)
}

// added is the wish for a limit of a pod: the sum of what plugins add to its containers'.
func (i *interceptor) added(file, uid string, pod rules.Limit, raised []ledger.Raised) (wish ledger.Wish) {
	containers, plugins := map[string]bool{}, map[string]bool{} // a container is true if its limit is raised, and not its period alone
	for _, r := range raised {
		if limitFile(r.Target) == file {
			containers[r.Container] = containers[r.Container] || r.Target != fieldTarget(abi.Resources+abi.CPUPeriod, "")
			plugins[r.Wish.Plugin] = true
			if r.Wish.At.After(wish.At) {
				wish = r.Wish
			}
		}
	}
	sum, unlimited := int64(0), false
	for id, amount := range containers {
		kubelet, wanted := i.limitsOf(ledger.ID{Pod: uid, Container: id}, file, raised)
		if kubelet.Amount <= 0 { // it has the pod's
			kubelet = pod
		}
		unlimited = unlimited || amount && wanted.Amount <= 0
		sum += max(wanted.In(pod.Period)-kubelet.In(pod.Period), 0)
	}
	switch {
	case pod.Amount <= 0 || sum == 0 && !unlimited:
		return ledger.Wish{}
	case unlimited:
		wish.Value = "+max"
	default:
		wish.Value = "+" + rules.Limit{Amount: sum, Period: pod.Period}.Text(file)
	}
	wish.Plugin = strings.Join(slices.Sorted(maps.Keys(plugins)), ", ")
	return wish
}

// limitFile is the file of the limit that a target sets; "" if it is none.
func limitFile(t ledger.Target) string {
	switch t {
	case fieldTarget(abi.Resources+abi.CPUQuota, ""), fieldTarget(abi.Resources+abi.CPUPeriod, ""),
		ledger.File(rules.CPUMax), fieldTarget(abi.Resources+abi.Unified, rules.CPUMax):
		return rules.CPUMax
	case fieldTarget(abi.Resources+abi.MemoryLimit, ""), ledger.File(rules.MemoryMax), fieldTarget(abi.Resources+abi.Unified, rules.MemoryMax):
		return rules.MemoryMax
	}
	return ""
}

// limitsOf returns a container's limit as kubelet wants it, and as plugins do.
func (i *interceptor) limitsOf(id ledger.ID, file string, raised []ledger.Raised) (kubelet, wanted rules.Limit) {
	record := i.Ledger.Record(id)
	c, _ := i.Store.Container(id.Container)
	now := crifield.Object{Container: crifield.ContainerOf(c)}
	number := func(f abi.Field) (kubelet, wanted int64) {
		t := fieldTarget(abi.Resources+f, "")
		kubelet, _ = now.Int64(abi.Resources + f)
		wanted = kubelet
		if v := record[t]; v.Kubelet != nil {
			kubelet, _ = strconv.ParseInt(*v.Kubelet, 10, 64)
		}
		for _, r := range raised {
			if n, err := strconv.ParseInt(r.Wish.Value, 10, 64); err == nil && r.Container == id.Container && r.Target == t && (n > wanted || n <= 0) {
				wanted = n
			}
		}
		return kubelet, wanted
	}
	if file == rules.MemoryMax {
		kubelet.Amount, wanted.Amount = number(abi.MemoryLimit)
		kubelet.Period, wanted.Period = 1, 1
	} else {
		kubelet.Amount, wanted.Amount = number(abi.CPUQuota)
		kubelet.Period, wanted.Period = number(abi.CPUPeriod)
		kubelet.Period, wanted.Period = cmp.Or(kubelet.Period, rules.DefaultPeriod), cmp.Or(wanted.Period, rules.DefaultPeriod)
	}
	for _, r := range raised { // a file, or a key of unified, counts more than the fields
		if r.Container == id.Container && (r.Target == ledger.File(file) || r.Target == fieldTarget(abi.Resources+abi.Unified, file)) {
			wanted = rules.ParseLimit(file, r.Wish.Value)
		}
	}
	return kubelet, wanted
}

// raisedBy are the limits of a container among what plugins ask for.
func raisedBy(container string, asked []ledger.Asked) (all []ledger.Raised) {
	for _, a := range asked {
		if a.Raises {
			all = append(all, ledger.Raised{Container: container, Target: a.Target, Wish: a.Wish})
		}
	}
	return all
}

// raised is a limit of a pod's cgroup: what plugins add, and kubelet's; "" if that is not known.
func (g groupFiles) raised(file, added, kubelet string) string {
	if kubelet == "" {
		return ""
	}
	limit, more := rules.ParseLimit(file, kubelet), rules.ParseLimit(file, added)
	if limit.Amount <= 0 || more.Amount <= 0 {
		limit.Amount = 0
	} else {
		limit.Amount += more.In(limit.Period)
	}
	return g.FitUndo(file, limit.Text(file))
}

// FitUndo implements ledger.Kernel: below what the pod uses, the kernel would kill in it.
func (g groupFiles) FitUndo(file, limit string) string {
	if most := rules.ParseLimit(file, limit); g.pod && file == rules.MemoryMax && most.Amount > 0 {
		text, _ := g.Get("memory.current") // without it nothing is known to be in use
		used := rules.ParseLimit(file, text)
		if used.Above(most) {
			return text
		}
	}
	return limit
}
