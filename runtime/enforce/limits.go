package enforce

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
)

// Lift lifts the limits of a pod's cgroup while a plugin has given a live container of it a
// higher one, and has kubelet's back afterwards. The kernel takes a container's limit above its pod's,
// so that it does not matter which of the two is written first.
func (e *Enforcer) Lift(ctx context.Context, uid string) Queued {
	if len(e.Ledger.Raised(uid)) == 0 && len(e.Ledger.Record(ID{Pod: uid}).Lifted()) == 0 {
		return nil
	}
	return e.queue(ctx, []ID{{Pod: uid}}, "a change of a container's limit")
}

// decideLimits has the ledger note which limits of the pod are lifted.
// While the store lacks one of the containers, as before it is filled, or knows it by a
// list alone, what limits kubelet gave it is not known: all stays as it is.
func (w work) decideLimits(ctx context.Context) {
	raised, lifted := w.Ledger.Raised(w.id.Pod), w.record.Lifted()
	nothing := len(raised) == 0 && len(lifted) == 0
	if nothing || w.Cgroups.Version() != 2 {
		return
	}
	for _, r := range raised {
		c, known := w.Store.Container(r.Container)
		described := !c.ByListAlone() || c.State == runtimeapi.ContainerState_CONTAINER_EXITED
		if !known || !described {
			return
		}
	}
	raised = slices.DeleteFunc(raised, func(r Raised) bool { return !w.live(ctx, r.Container) })
	for _, file := range []string{rules.CPUMax, rules.MemoryMax} {
		pod := w.kubelets(ctx, file)
		wish := w.lift(file, pod, raised)
		if wish.Plugin != "" && !slices.Contains(lifted, file) && !w.isSum(file, pod) {
			wish = Wish{} // see ownLimits
		}
		w.Ledger.Lift(w.id.Pod, file, wish)
	}
}

// PodLimit returns kubelet's limit of a pod, also while it is lifted, as the file shows it; "" if that is not known.
func (e *Enforcer) PodLimit(ctx context.Context, id ID, pod *crifield.Pod, file string) (value string) {
	if known := e.Ledger.Record(id).Values()[File(file)].Kubelet; known != nil {
		return *known
	}
	if pod == nil || e.Cgroups == nil {
		return ""
	}
	if group, err := e.Group(ctx, crifield.Object{Pod: pod}); err == nil {
		value, _ = e.Cgroups.Read(group, file)
	}
	return value
}

// kubelets is kubelet's limit of the pod.
func (w work) kubelets(ctx context.Context, file string) rules.Limit {
	return rules.ParseLimit(file, w.PodLimit(ctx, w.id, w.pod(w.id.Pod), file))
}

// live reports whether a container runs or is about to. That one has exited by itself shows in
// the kernel alone.
func (e *Enforcer) live(ctx context.Context, id string) bool {
	c, _ := e.Store.Container(id)
	switch c.State {
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return false
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return true
	}
	if e.Cgroups == nil {
		return true
	}
	group, err := e.Group(ctx, crifield.Object{Container: crifield.ContainerOf(c)})
	return err != nil || !e.Cgroups.Gone(group)
}

// lift is the wish for a limit of the pod one of whose containers has a higher one; the zero Wish if no container has,
// or the pod has no limit. Of memory it is the node's, and not "max": kubelet reads that as -1, and each
// resize is growth to it, which it makes without a look at what is in use.
func (w work) lift(file string, pod rules.Limit, raised []Raised) (wish Wish) {
	plugins := map[string]bool{}
	for _, r := range raised {
		sets, isFile := r.Target.File()
		if x, isField := fileOf(r.Target); isField && !isFile {
			sets = x.file
		}
		if sets != file || pod.Amount <= 0 {
			continue
		}
		wanted := w.wanted(r.Container, file, raised)
		unlimited := wanted.Amount <= 0 && r.Target != fieldTarget(abi.Resources+abi.CPUPeriod, "")
		if !unlimited && !wanted.Above(pod) {
			continue
		}
		plugins[r.Wish.Plugin] = true
		if r.Wish.At.After(wish.At) {
			wish = r.Wish
		}
	}
	if len(plugins) == 0 {
		return Wish{}
	}
	lifted := rules.Limit{Period: pod.Period}
	if file == rules.MemoryMax {
		lifted.Amount = w.Node.Load().Memory
	}
	wish.Plugin, wish.Value = strings.Join(slices.Sorted(maps.Keys(plugins)), ", "), lifted.Text(file)
	return wish
}

// ownLimit is a limit of a pod that is not lifted, since the pod has resources of its own, or containers to come.
type ownLimit struct{ file, value, plugin string }

// ownLimits returns those of the pod that a container has a higher one than.
func (w work) ownLimits(ctx context.Context, container string) (all []ownLimit) {
	raised := slices.DeleteFunc(w.Ledger.Raised(w.id.Pod), func(r Raised) bool { return r.Container != container })
	if len(raised) == 0 {
		return nil
	}
	lifted := w.record.Lifted()
	for _, file := range []string{rules.CPUMax, rules.MemoryMax} {
		pod := w.kubelets(ctx, file)
		if wish := w.lift(file, pod, raised); wish.Plugin != "" && !slices.Contains(lifted, file) {
			all = append(all, ownLimit{file, pod.Text(file), wish.Plugin})
		}
	}
	return all
}

// wanted is a container's limit as plugins want it: the highest of those that they have raised, else that of now.
func (w work) wanted(container, file string, raised []Raised) rules.Limit {
	c, _ := w.Store.Container(container)
	now := crifield.Object{Container: crifield.ContainerOf(c)}
	raised = slices.DeleteFunc(slices.Clone(raised), func(r Raised) bool { return r.Container != container })
	limit := limitOf(file, func(f abi.Field) int64 {
		wanted, _ := now.Int64(f)
		for _, r := range raised {
			n, err := strconv.ParseInt(r.Wish.Value, 10, 64)
			if err != nil || r.Target != fieldTarget(f, "") {
				continue
			}
			if n > wanted || n <= 0 {
				wanted = n
			}
		}
		return wanted
	})
	for _, r := range raised { // a file, or a key of unified, counts more than the fields
		if r.Target == File(file) || r.Target == fieldTarget(abi.Resources+abi.Unified, file) {
			limit = rules.ParseLimit(file, r.Wish.Value)
		}
	}
	return limit
}

// isSum reports whether a limit of the pod may be the sum of those of its containers and its overhead.
// It has no less than those that run or are about to need, and no more than the newest of each name: init
// containers have ended, and others may be about to start again. With resources of the pod's own
// (KEP-2837), the limit is no sum: CRI does not tell of them. kubelet gives each container a limit
// where the pod has one, but for ephemeral ones.
func (w work) isSum(file string, limit rules.Limit) bool {
	pod := w.pod(w.id.Pod)
	if pod == nil {
		return false
	}
	overhead := crifield.Object{Container: &crifield.Container{Resources: pod.Overhead}}
	least := limitOf(file, func(f abi.Field) int64 { n, _ := overhead.Int64(f); return max(n, 0) }).In(limit.Period)
	most, unit := least, max(limit.Period/100, 1) // systemd has whole percents of a CPU
	if file == rules.MemoryMax {                  // the kernel has whole pages
		unit = int64(os.Getpagesize())
	}
	for _, c := range newestOf(w.Store.Containers(pod.ID)) {
		record, now := w.Ledger.Record(ID{w.id.Pod, c.ID}).Values(), crifield.Object{Container: crifield.ContainerOf(c)}
		part := limitOf(file, func(f abi.Field) (kubelet int64) {
			if v := record[fieldTarget(f, "")]; v.Kubelet != nil {
				kubelet, _ = strconv.ParseInt(*v.Kubelet, 10, 64)
			} else {
				kubelet, _ = now.Int64(f)
			}
			return kubelet
		})
		if part.Amount <= 0 {
			continue
		}
		if c.ByListAlone() {
			return false
		}
		most += part.In(limit.Period) + unit
		if c.State != runtimeapi.ContainerState_CONTAINER_EXITED {
			least += part.In(limit.Period)
		}
	}
	return least-unit < limit.Amount && limit.Amount <= most
}

// limitOf is the limit that a file holds of an object with these resources.
func limitOf(file string, number func(abi.Field) int64) rules.Limit {
	if file == rules.MemoryMax {
		return rules.Limit{Amount: number(abi.Resources + abi.MemoryLimit), Period: 1}
	}
	period := cmp.Or(number(abi.Resources+abi.CPUPeriod), rules.DefaultPeriod)
	return rules.Limit{Amount: number(abi.Resources + abi.CPUQuota), Period: period}
}

// FitUndo implements Kernel: below what is in use, the kernel would kill.
func (g groupFiles) FitUndo(file, limit string) string {
	if most := rules.ParseLimit(file, limit); file == rules.MemoryMax && most.Amount > 0 {
		text, _ := g.Read("memory.current") // without it nothing is known to be in use
		used := rules.ParseLimit(file, text)
		if used.Above(most) {
			return text
		}
	}
	return limit
}

// Raised is a limit of a container that a plugin has set, and for which the pod's may be lifted.
type Raised struct {
	Container string // the container runtime's ID
	Target    Target
	Wish      Wish
}

// Raised returns those of the containers of a pod.
func (l *Ledger) Raised(uid string) (all []Raised) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pods[uid]
	if p == nil {
		return nil
	}
	for container := range p.raising {
		for t, v := range p.objects[container].values {
			if w := v.effective(t); w.Raises {
				all = append(all, Raised{container, t, w})
			}
		}
	}
	return all
}

// mayRaise tells the few values that Raised has to look at from the many that it need not.
func (v *Value) mayRaise() bool {
	return slices.ContainsFunc(v.Wishes, func(w Wish) bool { return w.Raises })
}

// effective is the wish that the container runs with: of a file the first one, of a field the one
// that was sent last, or is about to be sent again.
func (v *Value) effective(t Target) (w Wish) {
	if _, file := t.File(); (file || v.Last == "") && len(v.Wishes) > 0 {
		return v.Wishes[0]
	}
	for _, wish := range v.Wishes {
		if wish.Value == v.Last && !wish.At.Before(w.At) {
			w = wish
		}
	}
	return w
}

// Lifted returns the files of a pod's limits that are lifted.
func (r Record) Lifted() (files []string) {
	r.with(func(o *object) {
		for t, v := range o.values {
			if file, ok := t.File(); ok && v.mayRaise() {
				files = append(files, file)
			}
		}
	})
	return files
}

// Lift sets what the plugins whose containers have higher limits than a pod want of the pod's, in the
// place of what they wanted before. A wish without a plugin ends it. Withdraw does not: the pod's limit
// follows those of its containers.
func (l *Ledger) Lift(uid, file string, wish Wish) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, t := ID{Pod: uid}, File(file)
	if wish.Plugin == "" {
		if o := l.find(id); o != nil && o.withdraw(func(of Target, w Wish) bool { return of == t && w.Raises }) {
			l.changed(id)
		}
		return
	}
	wish.Raises, wish.Since = true, wish.At
	v := l.object(id).value(t)
	if len(v.Wishes) > 0 && v.Wishes[0].Plugin == wish.Plugin && v.Wishes[0].Value == wish.Value {
		return
	}
	v.Wishes = []Wish{wish}
	v.renewed()
	l.changed(id)
}
