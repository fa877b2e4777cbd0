package intercept

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// resetFields asks the runtime for the values of resources that it should have and has not:
// kubelet's, where no plugin wants another any more, and a plugin's that something else has
// overwritten in the kernel, after the object's earlier work. Whether there are such is looked for
// then if overwritten is true. What CRI cannot clear stays. What fails is due again with the next
// call or scan. It reports whether it has begun; the limits of the container's pod follow then.
func (i *interceptor) resetFields(ctx context.Context, id ledger.ID, why ledger.Why, overwritten bool) (begun bool) {
	record, ok := i.Store.Container(id.Container)
	if id.Container == "" || ok && (!i.started(id.Container) || record.State == runtimeapi.ContainerState_CONTAINER_EXITED) {
		return false
	}
	c := crifield.ContainerOf(record)
	if !ok { // the last plugin has gone, and the store with it: the runtime knows the container
		c = &crifield.Container{ID: id.Container}
	}
	due, _ := i.resets(id)
	if len(due) == 0 && !overwritten {
		return false
	}
	ctx = context.WithoutCancel(ctx)
	begun = i.Queue.Go(id.Container, func() {
		if !overwritten {
			i.reset(ctx, id, c)
			return
		}
		// An update that has just ended has its note in the queue by now.
		if !i.Queue.Go(id.Container, func() {
			i.noteOverwritten(ctx, id, c, why)
			i.reset(ctx, id, c)
		}) {
			i.notReset(ctx, id, due, errBusy)
		}
	})
	if !begun {
		i.notReset(ctx, id, due, errBusy)
	}
	return begun
}

// resets returns what resetFields asks for.
func (i *interceptor) resets(id ledger.ID) (due map[ledger.Target]string, r *runtimeapi.LinuxContainerResources) {
	if due = i.Ledger.Resets(id); len(due) == 0 {
		return nil, nil
	}
	r = &runtimeapi.LinuxContainerResources{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
	for t, value := range due {
		c, ok := resetTo(t, value)
		if _, wish := i.Ledger.Owner(id, t); wish {
			c, ok = changeOf(t, value)
		}
		if !ok {
			delete(due, t)
			continue
		}
		o.Set(&c)
	}
	return due, r
}

// resetTo is the change that brings back a value of a field; false if an update cannot.
func resetTo(t ledger.Target, value string) (plugin.Change, bool) {
	c, ok := changeOf(t, value)
	return c, ok && c.Key == "" && (c.Int != 0 || c.Text != "") && c.Field != abi.Resources+abi.OOMScoreAdj
}

func (i *interceptor) reset(ctx context.Context, id ledger.ID, c *crifield.Container) {
	defer i.raisePod(ctx, id.Pod) // resetFields leaves that to this
	due, r := i.resets(id)
	if len(due) == 0 {
		return // an earlier reset or update has sent it
	}
	repairs := i.Ledger.Repairs(id)
	record, _ := i.Store.Container(c.ID)
	namePartners(r, record.Config.GetLinux().GetResources())
	ctx, cancel := context.WithTimeout(ctx, deferredTime)
	defer cancel()
	done, err := i.Queue.acquireUpdate(ctx)
	if err != nil {
		i.notReset(ctx, id, due, err)
		return
	}
	defer done()
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.ID, Linux: r}
	hold := i.suspend(ctx, nil, c, req)
	defer func() { i.restore(ctx, nil, c, hold, req, err == nil) }()
	defer i.keepOOMGroup(ctx, c, r)() // before the files of plugins are written
	resp, err := i.Backend.UpdateContainerResources(ctx, req)
	if status.Code(err) == codes.NotFound {
		i.Ledger.Remove(id)
		return
	}
	if err != nil {
		i.notReset(ctx, id, due, err)
		return
	}
	i.Store.Observe(nil, req, resp)
	i.Ledger.Updated(id, ledger.Update{Sent: resourceValues(r)})
	i.repaired(ctx, id, c, repairs, due)
}

// notReset makes one event of the same failure.
func (i *interceptor) notReset(ctx context.Context, id ledger.ID, due map[ledger.Target]string, err error) {
	if i.Ledger.NotReset(id, due, err) {
		c, _ := i.Store.Container(id.Container)
		i.Observer.Observe(ctx, &observe.FieldsNotReset{Object: i.about(id, crifield.Object{Container: crifield.ContainerOf(c)}), Err: err})
	}
}
