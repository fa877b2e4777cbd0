package intercept

import (
	"context"
	"maps"
	"slices"
	"strings"

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
	due := i.resets(id)
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
			i.notReset(ctx, id, errBusy, due)
		}
	})
	if !begun {
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

// reset sends what is due in one update. If the runtime refuses that, and one of the fields may be
// the reason, the parts are sent on their own: one that is refused does not hold up the others.
func (i *interceptor) reset(ctx context.Context, id ledger.ID, c *crifield.Container) {
	defer i.raisePod(ctx, id.Pod) // resetFields leaves that to this
	due := i.resets(id)
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
	err = i.sendResets(ctx, id, c, due)
	if parts := due.parts(); len(parts) > 1 && ofFields(ctx, err) {
		i.resetApart(ctx, id, c, parts)
	} else if err != nil {
		i.notReset(ctx, id, err, due)
	}
}

// resetApart sends each part in an update of its own.
func (i *interceptor) resetApart(ctx context.Context, id ledger.ID, c *crifield.Container, parts []fieldResets) {
	for n, part := range parts {
		err := i.sendResets(ctx, id, c, part)
		switch {
		case ofFields(ctx, err):
			i.notReset(ctx, id, err, part)
		case err != nil: // the later ones would have the same answer
			i.notReset(ctx, id, err, parts[n:]...)
			return
		}
	}
}

// sendResets sends one update to the runtime, and notes what it has accepted.
func (i *interceptor) sendResets(ctx context.Context, id ledger.ID, c *crifield.Container, due fieldResets) (err error) {
	r, repairs := due.resources(), i.Ledger.Repairs(id)
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
	i.repaired(ctx, id, c, repairs, due)
	return nil
}

// notReset makes one event of the same failure.
func (i *interceptor) notReset(ctx context.Context, id ledger.ID, err error, parts ...fieldResets) {
	var all []ledger.Target
	for _, part := range parts {
		all = slices.AppendSeq(all, maps.Keys(part))
	}
	slices.Sort(all)
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
