package enforce

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// updateTime is how long an update of the proxy's own may take: a busy node needs many seconds to start runc.
const updateTime = time.Minute

// fieldChanges are changes of a container's resources.
type fieldChanges map[Target]plugin.Change

// updateTo is the change that gives a field a value; false if an update cannot, which says nothing with 0 or an empty text.
func updateTo(t Target, value string) (plugin.Change, bool) {
	c, ok := ChangeTo(t, value)
	named := c.Int != 0 || c.Text != ""
	return c, ok && named
}

// resetTo is the change that brings back kubelet's value of a field; false if an update cannot. It can for a key of unified that
// kubelet has named, but for a limit, which may be below what is in use by now.
func resetTo(t Target, value string) (plugin.Change, bool) {
	c, ok := updateTo(t, value)
	return c, ok && c.Field != abi.Resources+abi.OOMScoreAdj && c.Key != rules.MemoryMax
}

// update sends what is due in one update, and reports whether the runtime has accepted one. It calls no hook: a plugin that
// answers its own update would never come to an end.
func (w work) update(ctx context.Context) (sent bool) {
	due := fieldChanges{}
	for t, value := range w.record.Resets() {
		send := resetTo
		if _, wish := w.record.Owner(t); wish {
			send = updateTo
		}
		if c, ok := send(t, value); ok { // what CRI cannot say stays
			due[t] = c
		}
	}
	if len(due) == 0 {
		return false // an earlier update has sent it
	}
	ctx, cancel := context.WithTimeout(ctx, updateTime)
	defer cancel()
	if _, known := w.Store.Container(w.id.Container); !known { // the last plugin has gone, and the store with it
		other := *w.Enforcer
		other.Store = pods.NewStoreWith(KernelOf(w.Cgroups))
		w.Enforcer = &other
	}
	record, err := w.Store.ReadContainer(ctx, w.Backend, w.id.Container)
	if record.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return false
	}
	if err == nil {
		c := crifield.ContainerOf(record)
		if w.keepUsed(ctx, c, due); len(due) == 0 {
			return false
		}
		err = w.send(ctx, c, due)
	}
	switch {
	case err == nil:
		return true
	case pods.Gone(err) || record.ID != "" && !w.live(ctx, record.ID): // CRI-O answers Unknown for a container that has ended by itself
		w.record.Remove()
	default:
		w.record.Rest()
		w.notSent(ctx, err, due)
	}
	return false
}

// keepUsed takes a limit of memory that is below what is in use out of what is due: the kernel would kill.
// A later scan has it sent.
func (w work) keepUsed(ctx context.Context, c *crifield.Container, due fieldChanges) {
	limit, lower := due[fieldTarget(abi.Resources+abi.MemoryLimit, "")]
	if !lower || w.Cgroups == nil {
		return
	}
	group, err := w.groupOf(ctx, crifield.Object{Container: c})
	if err != nil {
		return // it has no processes
	}
	text, _ := w.Cgroups.Read(group, "memory.current")
	used := rules.ParseLimit(rules.MemoryMax, text)
	if !used.Above(rules.Limit{Amount: limit.Int, Period: 1}) {
		return
	}
	kept := fieldChanges{}
	for _, f := range []abi.Field{abi.MemoryLimit, abi.MemorySwap} {
		t := fieldTarget(abi.Resources+f, "")
		if change, ok := due[t]; ok {
			kept[t] = change
			delete(due, t)
		}
	}
	const why = "the container uses %d bytes of memory, and the limit of %d bytes would have the kernel kill processes"
	err = fmt.Errorf(why, used.Amount, limit.Int)
	w.notSent(ctx, err, kept)
}

// send sends one update to the runtime, and notes that it was accepted.
func (w work) send(ctx context.Context, c *crifield.Container, due fieldChanges) error {
	r := &runtimeapi.LinuxContainerResources{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
	for _, change := range due {
		o.Set(&change)
	}
	record, _ := w.Store.Container(c.ID)
	has := record.Config.GetLinux().GetResources()
	NamePartners(r, has)
	if idle, ok := w.record.Owner(File(rules.CPUIdle)); ok && idle.Value == "0" {
		NameWith(rules.CPUIdle, r, has)
	}
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.ID, Linux: r}
	w.record.Sending(Values(r))
	return w.Around(ctx, w.objectOf(crifield.Object{Container: c}), c, req, "", func() error {
		for _, file := range dialect.Union(func(r dialect.Runtime) []string { return r.Lost }) {
			defer w.keepFile(ctx, c, r, file)() // before the files of plugins are written
		}
		resp, err := w.Backend.UpdateContainerResources(ctx, req)
		if err != nil {
			return err
		}
		w.Store.Observe(nil, req, resp)
		w.record.Updated(Update{Sent: Values(r)})
		w.Named(w.id, r)
		return nil
	})
}

// notSent makes an event of each plugin's value that could not be sent, and one of kubelet's, once for the same
// failure.
func (w work) notSent(ctx context.Context, err error, due fieldChanges) {
	targets := slices.Sorted(maps.Keys(due))
	if !w.record.NotReset(targets, err) {
		return
	}
	c, _ := w.Store.Container(w.id.Container)
	obj := w.objectOf(crifield.Object{Container: crifield.ContainerOf(c)})
	var names []string
	for _, t := range targets {
		name := strings.TrimPrefix(string(t), string(Field("")))
		if wish, ok := w.record.Owner(t); ok {
			w.Observer.Observe(ctx, &observe.DeferredUpdateFailed{
				Plugin: wish.Plugin, Hook: wish.Hook, Object: obj, Field: "container.resources." + name, Err: err,
			})
		} else {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		w.Observer.Observe(ctx, &observe.FieldsNotReset{Object: obj, Fields: names, Err: err})
	}
}

// NamePartners has an update name what a runtime takes together with what it names. The sum of memory
// and swap is left out where the update has no limit of memory, or one above it.
func NamePartners(r, has *runtimeapi.LinuxContainerResources) {
	named, fields := r.MemorySwapLimitInBytes, r.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); r.ProtoReflect().Has(f) {
			NameWith(string(f.Name()), r, has)
		}
	}
	limit, sum := r.MemoryLimitInBytes, r.MemorySwapLimitInBytes
	if fits := sum < 0 || sum >= limit; named == 0 && (limit <= 0 || !fits) {
		r.MemorySwapLimitInBytes = 0
	}
}

// NameWith has an update that changes a resource or a cgroup file name what a runtime takes together with it, as the runtime
// has it, and reports whether it has added something. See package dialect.
func NameWith(changed string, update, has *runtimeapi.LinuxContainerResources) (added bool) {
	to, from := update.ProtoReflect(), has.ProtoReflect()
	for _, name := range dialect.Union(func(r dialect.Runtime) []string { return []string{r.Partners[changed]} }) {
		f := to.Descriptor().Fields().ByName(protoreflect.Name(name))
		if !to.Has(f) && from.Has(f) {
			to.Set(f, from.Get(f))
			added = true
		}
	}
	return added
}

// Named has the ledger note the values that an accepted update of a container names, by the cgroup file that the runtime writes
// them to: a file that shows just that, since a plugin wants the same, is not written. An update of a pod tells nothing:
// kubelet fills it in from the kernel.
func (e *Enforcer) Named(id ID, r *runtimeapi.LinuxContainerResources) {
	if e.Cgroups == nil {
		return
	}
	named := map[string][]string{}
	for file, value := range r.GetUnified() {
		named[file] = []string{value}
	}
	if r.GetCpuQuota() != 0 {
		limit := rules.Limit{Amount: max(r.GetCpuQuota(), 0), Period: cmp.Or(r.GetCpuPeriod(), rules.DefaultPeriod)}
		named[rules.CPUMax] = []string{limit.Text(rules.CPUMax)}
	}
	if n := r.GetCpuShares(); n > 0 {
		named["cpu.weight"] = dialect.Weights(n) // which of them depends on the runtime
	}
	memory := r.GetMemoryLimitInBytes()
	if memory != 0 {
		named[rules.MemoryMax] = []string{rules.Limit{Amount: max(memory, 0)}.Text(rules.MemoryMax)}
	}
	if swap, known := swapOf(r.GetMemorySwapLimitInBytes(), memory); known && swap >= 0 {
		named["memory.swap.max"] = []string{strconv.FormatInt(swap, 10)}
	}
	if r.GetCpusetCpus() != "" {
		named["cpuset.cpus"] = []string{r.GetCpusetCpus()}
	}
	if r.GetCpusetMems() != "" {
		named["cpuset.mems"] = []string{r.GetCpusetMems()}
	}
	g := groupFiles{Group: e.Cgroups.Group(e.Ledger.Record(id).Group())}
	defer g.Close()
	e.Ledger.Record(id).Named(named, g)
}

// Updated notes an update of a container that the runtime has accepted as kubelet sent it.
func (e *Enforcer) Updated(id ID, r *runtimeapi.UpdateContainerResourcesRequest) {
	e.Store.Observe(nil, r, nil)
	values := Values(r.GetLinux())
	e.Ledger.Record(id).Updated(Update{Kubelet: values, Sent: values})
	e.Named(id, r.GetLinux())
}
