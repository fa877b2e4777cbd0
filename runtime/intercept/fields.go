package intercept

import (
	"context"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// fieldBefore is a change that brings back what a resource of a container was before the first plugin of an event
// changed it. An update has it twice, also as kubelet's request has it.
type fieldBefore struct {
	plugin.Change
	named bool // by kubelet's request
}

// noteBefore notes what a change is about to replace, if it is a resource of a container. Apply
// calls it in the order of the changes.
func (e *event) noteBefore(c *plugin.Change) {
	if !enforce.OfResource(c) {
		return
	}
	for i := range e.before {
		if b := &e.before[i]; b.Field == c.Field && b.Object == c.Object && b.Key == c.Key {
			return
		}
	}
	if e.before == nil {
		e.before = e.few[:0]
	}
	e.before = append(e.before, fieldBefore{inverse(e.object(c.Object), c), false})
	if c.Object == abi.Container && e.sent != nil {
		e.before = append(e.before, fieldBefore{inverse(crifield.Object{Container: e.sent}, c), true})
	}
}

// inverse is the change that brings back what an object has.
func inverse(o crifield.Object, c *plugin.Change) plugin.Change {
	was := *c
	was.Int, was.Text = 0, ""
	switch c.Op {
	case plugin.SetInt64:
		was.Int, _ = o.Int64(c.Field)
	case plugin.SetText:
		was.Text, _ = o.Text(c.Field)
	default:
		was.Text, _ = o.Lookup(c.Field, c.Key)
	}
	return was
}

// noteFields has the ledger note what the call says of its container's resources, while the call
// keeps others from the container: an update of the proxy's own that waits for that would send
// what was before the call, and would not be known to have done so.
func (c *call) noteFields(ctx context.Context, after *event) {
	ctx = context.WithoutCancel(ctx)
	makes, updates := c.method.Effect == cri.Makes, c.method.Effect == cri.Updates
	if after == nil || after.container == nil {
		return
	}
	if !makes && !updates {
		return
	}
	id := c.Enforcer.ID(crifield.Object{Container: after.container})
	if len(c.event.before) == 0 && (makes || !c.Ledger.Record(id).Has()) {
		return
	}
	u := enforce.Update{Asked: c.event.origin().Fields(c.owned, abi.Container, c.event.valuesBefore(abi.Container)), At: c.event.at}
	if updates {
		u.Sent, u.Kubelet = enforce.Values(*c.method.Carries(c.req).Resources), c.event.kubeletValues()
	} else {
		u.Sent = enforce.Values(c.event.container.Resources.Now)
	}
	if makes || c.Enforcer.Known(id) { // it may have been removed since
		c.Ledger.Record(id).Updated(u)
	}
	c.Enforcer.Lift(ctx, id.Pod)
	if updates {
		c.Enforcer.Reconcile(ctx, id)
	}
}

// askAhead has the ledger note what plugins want of a container before the runtime is sent the update: a proxy that
// is killed before it hears the answer must not take that for kubelet's.
func (c *call) askAhead() {
	if c.event == nil || c.event.sent == nil {
		return
	}
	asked := c.event.origin().Fields(c.owned, abi.Container, c.event.valuesBefore(abi.Container))
	for k := range asked {
		asked[k].Sent = true
	}
	revert, any := c.Enforcer.Ask(crifield.Object{Container: c.event.container}, asked)
	if !any {
		return
	}
	ofPod := c.rollback
	c.rollback = func() {
		revert()
		ofPod()
	}
}

// valuesBefore are the resources of an object that plugins have changed, as they were before.
func (e *event) valuesBefore(of abi.Object) map[enforce.Target]string {
	all := map[enforce.Target]string{}
	for k := range e.before {
		if b := &e.before[k]; b.Object == of && !b.named {
			all[enforce.TargetOf(&b.Change)] = enforce.ValueOf(&b.Change)
		}
	}
	return all
}

// kubeletValues are the resources that kubelet's update of the container names.
func (e *event) kubeletValues() map[enforce.Target]string {
	all := enforce.Values(e.sent.Resources.Now)
	for k := range e.before {
		switch b := &e.before[k]; {
		case !b.named:
		case b.Int == 0 && b.Text == "":
			delete(all, enforce.TargetOf(&b.Change))
		default:
			all[enforce.TargetOf(&b.Change)] = enforce.ValueOf(&b.Change)
		}
	}
	return all
}

// repeatWishes sends the container's values of plugins again that the update would overwrite:
// kubelet repeats its own earlier value, and no plugin has changed the resource in this call.
func (c *call) repeatWishes() {
	if c.event == nil || c.event.sent == nil {
		return
	}
	record := c.Ledger.Record(c.Enforcer.ID(crifield.Object{Container: c.event.container}))
	if !record.Has() {
		return
	}
	var again []plugin.Owned
	sent, changed := map[enforce.Target]string{}, c.event.valuesBefore(abi.Container)
	for t, kubelet := range c.event.kubeletValues() {
		if _, ok := changed[t]; ok || !record.Repeats(t, kubelet) {
			continue
		}
		if w, ok := record.Owner(t); ok && w.Value != kubelet {
			if change, ok := enforce.ChangeTo(t, w.Value); ok {
				again = append(again, plugin.Owned{Plugin: w.Plugin, Change: change})
				sent[t] = w.Value
			}
		}
	}
	if len(again) > 0 {
		c.event.Apply(again)
		c.dirty = true
		record.Sending(sent) // the wish may end before there is an answer
	}
}
