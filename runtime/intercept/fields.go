package intercept

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
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
		e.before = e.few[:0]
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
			wish := ledger.Wish{Plugin: o.Plugin, Generation: e.host.Generations[o.Plugin], Hook: e.hook, Value: value, At: e.at, Raises: c.Raises}
			asked = append(asked, ledger.Asked{Target: fieldTarget(c.Field, c.Key), Wish: wish})
		}
	}
	return asked
}

// noteFields has the ledger note what the call says of its container's resources: of a new
// container before the caller has its answer, else after it. A later update of the container
// waits for that.
func (c *call) noteFields(ctx context.Context, after *event) {
	ctx = context.WithoutCancel(ctx)
	if after == nil || after.container == nil || c.method.Effect != cri.Makes && c.method.Effect != cri.Updates {
		return
	}
	id := c.idOf(crifield.Object{Container: after.container})
	if len(c.event.before) == 0 && (c.method.Effect == cri.Makes || !c.Ledger.Has(id)) {
		return
	}
	makes := c.method.Effect == cri.Makes
	note := func() {
		u := ledger.Update{Asked: askedFields(c.event, abi.Container, c.owned), Before: c.event.valuesBefore(abi.Container)}
		if c.method.Effect == cri.Updates {
			u.Sent, u.Kubelet = resourceValues(*c.method.Carries(c.req).Resources), c.event.kubeletValues()
		} else {
			u.Sent = resourceValues(c.event.container.Resources.Now)
			u.Kubelet = merged(u.Sent, u.Before)
		}
		if makes || c.known(id) { // it may have been removed since
			c.Ledger.Updated(id, u)
		}
		c.liftPod(ctx, id.Pod)
	}
	// A new container may start next, or the end of the call has it undone. A goroutine would cost a new
	// container more than the note does, and the next call would run beside it.
	if makes || c.Cut.hasBegun() || !c.later(id.Container, note) {
		note()
	}
	if c.method.Effect == cri.Updates {
		c.resetFields(ctx, id)
	}
}

// askedAhead is askedFields before the runtime is sent the values, with those that it has.
func askedAhead(e *event, of abi.Object, changes []plugin.Owned) (asked []ledger.Asked) {
	before := e.valuesBefore(of)
	for _, a := range askedFields(e, of, changes) {
		if value, ok := before[a.Target]; ok {
			a.Has = &value
		}
		asked = append(asked, a)
	}
	return asked
}

// askAhead has the ledger note what plugins want of a container before the runtime is sent the update: a proxy that
// is killed before it hears the answer must not take that for kubelet's.
func (c *call) askAhead() {
	if c.event == nil || c.event.sent == nil {
		return
	}
	revert, any := c.ask(crifield.Object{Container: c.event.container}, askedAhead(c.event, abi.Container, c.owned))
	if !any {
		return
	}
	ofPod := c.takeBack
	c.takeBack = func() {
		revert()
		if ofPod != nil {
			ofPod()
		}
	}
}

// valuesBefore are the resources of an object that plugins have changed, as they were before.
func (e *event) valuesBefore(of abi.Object) map[ledger.Target]string {
	all := map[ledger.Target]string{}
	for k := range e.before {
		if b := &e.before[k]; b.object == of && !b.named {
			all[b.target()] = b.value()
		}
	}
	return all
}

// kubeletValues are the resources that kubelet's update of the container names.
func (e *event) kubeletValues() map[ledger.Target]string {
	all := resourceValues(e.sent.Resources.Now)
	for k := range e.before {
		switch b := &e.before[k]; {
		case !b.named:
		case b.held == held{}:
			delete(all, b.target())
		default:
			all[b.target()] = b.value()
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
	id := c.idOf(crifield.Object{Container: c.event.container})
	if !c.Ledger.Has(id) {
		return
	}
	var again []plugin.Owned
	changed := c.event.valuesBefore(abi.Container)
	for t, kubelet := range c.event.kubeletValues() {
		if _, ok := changed[t]; ok || !c.Ledger.Repeats(id, t, kubelet) {
			continue
		}
		if w, ok := c.Ledger.Owner(id, t); ok && w.Value != kubelet {
			if change, ok := changeOf(t, w.Value); ok {
				again = append(again, plugin.Owned{Plugin: w.Plugin, Change: change})
			}
		}
	}
	if len(again) > 0 {
		c.event.Apply(again)
		c.dirty = true
	}
}

// changeOf is the change that gives a resource of a container a value of the ledger; false if
// there is none.
func changeOf(t ledger.Target, value string) (c plugin.Change, ok bool) {
	name, key, _ := strings.Cut(strings.TrimPrefix(string(t), string(ledger.Field(""))), "[")
	for _, row := range abi.Fields {
		if row.Object != abi.Container || row.Field < abi.Resources || row.Name != "resources."+name {
			continue
		}
		c = plugin.Change{Op: plugin.SetText, Object: abi.Container, Field: row.Field, Key: strings.TrimSuffix(key, "]"), Text: value}
		switch {
		case row.Type == abi.Int64:
			n, err := strconv.ParseInt(value, 10, 64)
			c.Op, c.Text, c.Int = plugin.SetInt64, "", n
			return c, err == nil
		case row.Type == abi.Map && value == "":
			c.Op = plugin.DeleteEntry
		case row.Type == abi.Map:
			c.Op = plugin.SetEntry
		}
		return c, true
	}
	return c, false
}
