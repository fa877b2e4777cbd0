package intercept

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// fieldBefore is a resource of a container as it was before the first plugin of an event
// changed it. An update has it twice, also as kubelet's request has it. It is small, since
// making it is part of a hook's time.
type fieldBefore struct {
	key    string
	held   held
	object abi.Object
	field  abi.Field
	op     plugin.Op
	named  bool // by kubelet's request
}

// held is the value of a field: a number or a text, by the operation that sets it.
type held struct {
	number int64
	text   string
}

// noteBefore notes what a change is about to replace, if it is a resource of a container. Apply
// calls it in the order of the changes.
func (e *event) noteBefore(c *plugin.Change) {
	if c.Field < abi.Resources || c.Kind() != abi.Container {
		return
	}
	for i := range e.before {
		if b := &e.before[i]; b.field == c.Field && b.object == c.Object && b.key == c.Key {
			return
		}
	}
	if e.before == nil {
		e.before = make([]fieldBefore, 0, 3)
	}
	e.before = append(e.before, fieldBefore{key: c.Key, held: heldBy(e.object(c.Object), c), object: c.Object, field: c.Field, op: c.Op})
	if c.Object == abi.Container && e.sent != nil {
		e.before = append(e.before, fieldBefore{key: c.Key, held: heldBy(crifield.Object{Container: e.sent}, c), object: c.Object, field: c.Field, op: c.Op, named: true})
	}
}

func heldBy(o crifield.Object, c *plugin.Change) (h held) {
	switch c.Op {
	case plugin.SetInt64:
		h.number, _ = o.Int64(c.Field)
	case plugin.SetText:
		h.text, _ = o.Text(c.Field)
	default:
		h.text, _ = o.Lookup(c.Field, c.Key)
	}
	return h
}

func (b *fieldBefore) target() ledger.Target { return fieldTarget(b.field, b.key) }

// value is the value as the ledger has it.
func (b *fieldBefore) value() string { return b.held.as(b.op, b.field) }

// as is the value as the ledger has it. CRI says both 0 and -1 for no quota, and an update can
// only say -1.
func (h held) as(op plugin.Op, f abi.Field) string {
	switch {
	case op != plugin.SetInt64:
		return h.text
	case f == abi.Resources+abi.CPUQuota:
		return strconv.FormatInt(cmp.Or(h.number, -1), 10)
	}
	return strconv.FormatInt(h.number, 10)
}

// fieldTarget is the ledger's name of a resource, such as "field cpu_quota".
func fieldTarget(f abi.Field, key string) ledger.Target {
	name := strings.TrimPrefix(plugin.FieldOf(abi.Container, f).Name, "resources.")
	if key != "" {
		name += "[" + key + "]"
	}
	return ledger.Field(name)
}

// resourceValues are the resources that a request names.
func resourceValues(r *runtimeapi.LinuxContainerResources) map[ledger.Target]string {
	all := map[ledger.Target]string{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r}}}
	for _, row := range abi.Fields {
		if row.Object != abi.Container || row.Field < abi.Resources {
			continue
		}
		switch row.Type {
		case abi.Int64:
			if n, _ := o.Int64(row.Field); n != 0 {
				all[fieldTarget(row.Field, "")] = strconv.FormatInt(n, 10)
			}
		case abi.String:
			if text, _ := o.Text(row.Field); text != "" {
				all[fieldTarget(row.Field, "")] = text
			}
		case abi.Map:
			if entries, errno := o.Entries(row.Field); errno == abi.OK {
				for k, v := range entries {
					all[fieldTarget(row.Field, k)] = v
				}
			}
		}
	}
	return all
}

// askedFields are the wishes for resources among the changes of one object of an event.
func askedFields(e *event, of abi.Object, changes []plugin.Owned) (asked []ledger.Asked) {
	for k := range changes {
		o := &changes[k]
		if c := &o.Change; c.Op != plugin.WriteFile && c.Object == of && c.Kind() == abi.Container && c.Field >= abi.Resources {
			value := held{c.Int, c.Text}.as(c.Op, c.Field)
			wish := ledger.Wish{Plugin: o.Plugin, Hook: e.hook, Value: value, At: e.at}
			asked = append(asked, ledger.Asked{Target: fieldTarget(c.Field, c.Key), Wish: wish})
		}
	}
	return asked
}

// noteFields has the ledger note what the call says of its container's resources, once the
// caller has its answer. A later update of the container waits for that.
func (c *call) noteFields(after *event) {
	if after == nil || after.container == nil || c.method.Effect != cri.Makes && c.method.Effect != cri.Updates {
		return
	}
	id := c.idOf(crifield.Object{Container: after.container})
	if len(c.event.before) == 0 && (c.method.Effect == cri.Makes || !c.Ledger.Has(id)) {
		return
	}
	note := func() {
		sent := resourceValues(c.event.container.Resources.Now)
		if c.method.Effect == cri.Updates {
			sent = resourceValues(*c.method.Carries(c.req).Resources)
		}
		u := ledger.Update{Asked: askedFields(c.event, abi.Container, c.owned), Kubelet: maps.Clone(sent), Before: map[ledger.Target]string{}, Sent: sent}
		for k := range c.event.before {
			b := &c.event.before[k]
			switch t := b.target(); {
			case b.object != abi.Container:
			case !b.named:
				u.Before[t], u.Kubelet[t] = b.value(), b.value()
			case b.held == held{}:
				delete(u.Kubelet, t)
			default:
				u.Kubelet[t] = b.value()
			}
		}
		c.Ledger.Updated(id, u)
	}
	if !c.Queue.Go(id.Container, note) {
		note()
	}
}

// notedUpdate has the ledger note an update of the host's own that the runtime has accepted.
func (i *interceptor) notedUpdate(e *event, of abi.Object, id ledger.ID, changes []plugin.Owned, r *runtimeapi.LinuxContainerResources) {
	before := map[ledger.Target]string{}
	for k := range e.before {
		if b := &e.before[k]; b.object == of {
			before[b.target()] = b.value()
		}
	}
	i.Ledger.Updated(id, ledger.Update{Before: before, Asked: askedFields(e, of, changes), Sent: resourceValues(r)})
}

// resetFields asks the runtime for kubelet's values of the resources that no plugin wants any
// more, after the object's earlier work. What CRI cannot clear stays. If cpu.idle has ended, the
// CPU shares are among them, since the kernel has given the container its default share.
func (i *interceptor) resetFields(ctx context.Context, id ledger.ID, endsIdle bool) {
	c, ok := i.Store.Container(id.Container)
	if !ok || !i.started(id.Container) {
		return
	}
	r := &runtimeapi.LinuxContainerResources{}
	resettable := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r, Own: true}}}
	kubelet := i.Ledger.Resets(id)
	for _, row := range abi.Fields {
		value := ""
		if row.Object == abi.Container && row.Field >= abi.Resources && row.Type != abi.Map && row.Field != abi.Resources+abi.OOMScoreAdj {
			value = kubelet[fieldTarget(row.Field, "")]
		}
		switch n, err := strconv.ParseInt(value, 10, 64); {
		case row.Type == abi.String && value != "":
			resettable.Set(&plugin.Change{Op: plugin.SetText, Object: abi.Container, Field: row.Field, Text: value})
		case row.Type == abi.Int64 && err == nil && n != 0:
			resettable.Set(&plugin.Change{Op: plugin.SetInt64, Object: abi.Container, Field: row.Field, Int: n})
		}
	}
	if endsIdle && r.CpuShares == 0 {
		r.CpuShares = c.Config.GetLinux().GetResources().GetCpuShares()
	}
	if len(resourceValues(r)) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	started := i.Queue.Go(id.Container, func() { i.reset(ctx, id, crifield.ContainerOf(c), r) })
	if !started {
		i.resetFailed(ctx, id, crifield.ContainerOf(c), errBusy)
	}
}

func (i *interceptor) reset(ctx context.Context, id ledger.ID, c *crifield.Container, r *runtimeapi.LinuxContainerResources) {
	ctx, cancel := context.WithTimeout(ctx, deferredTime)
	defer cancel()
	done, err := i.Queue.acquireUpdate(ctx)
	if err != nil {
		i.resetFailed(ctx, id, c, err)
		return
	}
	defer done()
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.ID, Linux: r}
	hold := i.suspend(ctx, nil, c, req)
	defer func() { i.restore(ctx, nil, c, hold, err == nil) }()
	resp, err := i.Backend.UpdateContainerResources(ctx, req)
	if err != nil {
		i.resetFailed(ctx, id, c, err)
		return
	}
	i.Store.Observe(nil, req, resp)
	i.Ledger.Updated(id, ledger.Update{Sent: resourceValues(r)})
}

func (i *interceptor) resetFailed(ctx context.Context, id ledger.ID, c *crifield.Container, err error) {
	i.Observer.Observe(ctx, &observe.FieldsNotReset{Object: i.about(id, crifield.Object{Container: c}), Err: err})
}
