package intercept

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// fieldResets are the changes of a container's resources that resetFields asks for.
type fieldResets map[ledger.Target]plugin.Change

// resources is what an update with the changes names.
func (f fieldResets) resources() *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
	for _, c := range f {
		o.Set(&c)
	}
	return r
}

// resetFields asks the runtime for the values of resources that it should have and has not:
// kubelet's, where no plugin wants another any more, and a plugin's that the kernel has lost, after the
// object's earlier work. What CRI cannot clear stays. What fails is due again with the next
// call or scan. It reports whether it has begun; the limits of the container's pod follow then.
func (i *interceptor) resetFields(ctx context.Context, id ledger.ID) (begun bool) {
	record, ok := i.Store.Container(id.Container)
	if id.Container == "" || ok && (!i.started(id.Container) || record.State == runtimeapi.ContainerState_CONTAINER_EXITED) {
		return false
	}
	c := crifield.ContainerOf(record)
	if !ok { // the last plugin has gone, and the store with it: the runtime knows the container
		c = &crifield.Container{ID: id.Container}
	}
	due := i.resets(id)
	if len(due) == 0 {
		return false
	}
	ctx = context.WithoutCancel(ctx)
	if begun = i.Queue.Go(id.Container, func() { i.reset(ctx, id, c) }); !begun {
		i.notReset(ctx, id, errBusy, due)
	}
	return begun
}

// resets returns what resetFields asks for.
func (i *interceptor) resets(id ledger.ID) fieldResets {
	due := fieldResets{}
	for t, value := range i.Ledger.Resets(id) {
		c, ok := resetTo(t, value)
		if _, wish := i.Ledger.Owner(id, t); wish {
			c, ok = changeOf(t, value)
		}
		if ok {
			due[t] = c
		}
	}
	return due
}

// resetTo is the change that brings back a value of a field; false if an update cannot.
func resetTo(t ledger.Target, value string) (plugin.Change, bool) {
	c, ok := changeOf(t, value)
	return c, ok && c.Key == "" && (c.Int != 0 || c.Text != "") && c.Field != abi.Resources+abi.OOMScoreAdj
}

// reset sends what is due in one update.
func (i *interceptor) reset(ctx context.Context, id ledger.ID, c *crifield.Container) {
	defer i.liftPod(ctx, id.Pod) // resetFields leaves that to this
	due := i.resets(id)
	i.keepUsed(ctx, id, c, due)
	if len(due) == 0 {
		return // an earlier reset or update has sent it
	}
	ctx, cancel := context.WithTimeout(ctx, deferredTime)
	defer cancel()
	done, err := i.Queue.acquireUpdate(ctx)
	if err != nil {
		i.notReset(ctx, id, err, due)
		return
	}
	defer done()
	if err := i.sendResets(ctx, id, c, due); err != nil {
		i.notReset(ctx, id, err, due)
	}
}

// keepUsed takes a limit of memory that is below what is in use out of what is due: the kernel would kill.
// A later scan has it sent.
func (i *interceptor) keepUsed(ctx context.Context, id ledger.ID, c *crifield.Container, due fieldResets) {
	limit, lower := due[fieldTarget(abi.Resources+abi.MemoryLimit, "")]
	if !lower || i.Cgroups == nil {
		return
	}
	group, err := i.groupOf(ctx, id, crifield.Object{Container: c})
	if err != nil {
		return // it has no processes
	}
	text, _ := i.Cgroups.Get(group, "memory.current")
	used := rules.ParseLimit(rules.MemoryMax, text)
	if !used.Above(rules.Limit{Amount: limit.Int, Period: 1}) {
		return
	}
	kept := fieldResets{}
	for _, f := range []abi.Field{abi.MemoryLimit, abi.MemorySwap} {
		t := fieldTarget(abi.Resources+f, "")
		if change, ok := due[t]; ok {
			kept[t] = change
			delete(due, t)
		}
	}
	i.notReset(ctx, id, fmt.Errorf("the container uses %d bytes of memory, and the limit of %d bytes would have the kernel kill processes", used.Amount, limit.Int), kept)
}

// sendResets sends one update to the runtime, and notes what it has accepted.
func (i *interceptor) sendResets(ctx context.Context, id ledger.ID, c *crifield.Container, due fieldResets) (err error) {
	r := due.resources()
	record, _ := i.Store.Container(c.ID)
	namePartners(r, record.Config.GetLinux().GetResources())
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.ID, Linux: r}
	hold := i.suspend(ctx, nil, c, req)
	defer func() { i.restore(ctx, nil, c, hold, req, err == nil) }()
	defer i.keepOOMGroup(ctx, c, r)() // before the files of plugins are written
	resp, err := i.Backend.UpdateContainerResources(ctx, req)
	if notFound(err) {
		i.Ledger.Remove(id)
	}
	if err != nil {
		return err
	}
	i.Store.Observe(nil, req, resp)
	i.Ledger.Updated(id, ledger.Update{Sent: resourceValues(r)})
	return nil
}

// notReset makes one event of the same failure.
func (i *interceptor) notReset(ctx context.Context, id ledger.ID, err error, due fieldResets) {
	all := slices.Sorted(maps.Keys(due))
	if i.Ledger.NotReset(id, all, err) {
		names := make([]string, len(all))
		for n, t := range all {
			names[n] = strings.TrimPrefix(string(t), string(ledger.Field("")))
		}
		c, _ := i.Store.Container(id.Container)
		about := i.about(id, crifield.Object{Container: crifield.ContainerOf(c)})
		i.Observer.Observe(ctx, &observe.FieldsNotReset{Object: about, Fields: names, Err: err})
	}
}

// namePartners has an update of the host's own name what runtimes write together, as the runtime has
// it. To crun, a period without a quota means that there is no quota, and it does not write a quota
// of -1 without a period. To containerd, a limit of memory alone means that there is no swap.
func namePartners(r, has *runtimeapi.LinuxContainerResources) {
	if r.CpuQuota != 0 || r.CpuPeriod != 0 {
		setIfZero(&r.CpuQuota, has.GetCpuQuota())
		setIfZero(&r.CpuPeriod, has.GetCpuPeriod())
	}
	if r.MemorySwapLimitInBytes != 0 {
		setIfZero(&r.MemoryLimitInBytes, has.GetMemoryLimitInBytes())
	}
	if swap := has.GetMemorySwapLimitInBytes(); r.MemoryLimitInBytes > 0 && (swap < 0 || swap >= r.MemoryLimitInBytes) {
		setIfZero(&r.MemorySwapLimitInBytes, swap)
	}
}

func setIfZero(n *int64, value int64) {
	if *n == 0 {
		*n = value
	}
}
