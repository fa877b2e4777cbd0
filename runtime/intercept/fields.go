package intercept

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

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
	if changed := c.event.container.Resources.Own; !changed && (makes || !c.Ledger.Record(id).Has()) {
		return
	}
	u := enforce.Update{Asked: c.event.fields(c.owned, abi.Container, c.event.container), At: c.event.at, Makes: makes}
	if updates {
		u.Sent, u.Kubelet = enforce.Values(*c.method.Carries(c.req).Resources), c.event.kubeletValues()
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
	asked := c.event.fields(c.owned, abi.Container, c.event.container)
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

// files are the wishes for cgroup files among the changes of one object.
func (e *event) files(changes []plugin.Owned, of abi.Object) (asked []enforce.Asked) {
	for k := range changes {
		if c := &changes[k].Change; c.Object == of && c.IsFile() {
			asked = append(asked, askedIn(e, &changes[k]))
		}
	}
	return asked
}

// fields are the wishes for resources among the changes of one object: of a container, which has these changes already, or nil. Has of
// each is what it had before the first change.
func (e *event) fields(changes []plugin.Owned, of abi.Object, c *crifield.Container) (asked []enforce.Asked) {
	before := crifield.Object{Container: new(crifield.Container)}
	if c != nil {
		before.Container.Resources.Now = c.Resources.Before()
	}
	for k := range changes {
		was := changes[k].Change // what brings back the value before
		if was.Object != of || !enforce.OfResource(&was) {
			continue
		}
		was.Int, was.Text = 0, ""
		switch was.Op {
		case plugin.SetInt64:
			was.Int, _ = before.Int64(was.Field)
		case plugin.SetText:
			was.Text, _ = before.Text(was.Field)
		default:
			was.Text, _ = before.Lookup(was.Field, was.Key)
		}
		a, has := askedIn(e, &changes[k]), enforce.ValueOf(&was)
		a.Has = &has
		asked = append(asked, a)
	}
	return asked
}

// askedIn is the wish of a plugin's change in an event.
func askedIn(e *event, by *plugin.Owned) enforce.Asked {
	c := &by.Change
	w := enforce.Wish{
		Plugin: by.Plugin, Generation: e.host.Generations[by.Plugin], Hook: e.hook, Value: enforce.ValueOf(c), At: e.at, Raises: c.Raises,
	}
	return enforce.Asked{Target: enforce.TargetOf(c), Wish: w, Ends: c.Op == plugin.Withdraw}
}

// kubeletValues are the resources that kubelet's update of the container names.
func (e *event) kubeletValues() map[enforce.Target]string {
	return enforce.Values(e.sent.Resources.Before())
}

// repeatWishes sends the container's values of plugins again that the update would overwrite: kubelet repeats its own earlier
// value, and no plugin has changed the resource in this call. It also sends those that a runtime takes together with what the
// update names, and loses otherwise.
func (c *call) repeatWishes() {
	if c.event == nil || c.event.sent == nil {
		return
	}
	record := c.Ledger.Record(c.Enforcer.ID(crifield.Object{Container: c.event.container}))
	if !record.Has() {
		return
	}
	var again []plugin.Owned
	sent, asked := map[enforce.Target]string{}, c.event.fields(c.owned, abi.Container, c.event.container)
	named := c.event.kubeletValues()
	with := cmp.Or(proto.CloneOf(c.event.sent.Resources.Now), &runtimeapi.LinuxContainerResources{})
	enforce.NamePartners(with, c.event.container.Resources.Now)
	for t, value := range enforce.Values(with) {
		w, wanted := record.Owner(t)
		changed := slices.ContainsFunc(asked, func(a enforce.Asked) bool { return a.Target == t && !a.Ends })
		switch kubelet, names := named[t]; {
		case !wanted, changed:
		case names && (w.Value == kubelet || !record.Repeats(t, kubelet)):
		case !names && w.Value != value: // the runtime does not have it yet
		default:
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
