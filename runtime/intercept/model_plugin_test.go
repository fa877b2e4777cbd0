package intercept_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// modelPlugin is a plugin that wants the same of all pods and containers, and asks for all of it whenever it is called.
type modelPlugin struct {
	*modelWorld
	id           string
	present, dry bool
	generation   string
	wants        map[string]string // by target; "pod pids.max" is a file of pods, others are targets of containers
	withdraws    map[string]bool   // targets of containers that it wants no longer, for now
	synchronized *intercept.Synchronized
}

// modelAsk is what a plugin has been told that it gets, if the call succeeds.
type modelAsk struct {
	of     *modelObject // nil: the container that is being created
	target string
	wish   modelWish
	ends   bool // it is withdrawn
}

const modelHooks = 1<<abi.PreRunPodSandbox | 1<<abi.PreCreateContainer | 1<<abi.PreUpdateContainerResources |
	1<<abi.Synchronize | 1<<abi.Tick

func (p *modelPlugin) active() bool { return p.present && !p.dry && !p.bypassed }

func (p *modelPlugin) member() plugin.Member {
	granted := abi.AllCapabilities &^ abi.CapabilitySetOf(abi.PodLimits)
	return plugin.Member{ID: p.id, Plugin: function(p.call), Hooks: modelHooks, Capabilities: granted}
}

// call is any hook of the plugin.
func (p *modelPlugin) call(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev.Hook() {
	case abi.PreRunPodSandbox:
		p.asked = append(p.asked, p.askPod(ev, adj)...)
	case abi.PreCreateContainer:
		p.asked = append(p.asked, p.ask(adj, abi.Container, nil)...)
	case abi.PreUpdateContainerResources:
		p.asked = append(p.asked, p.ask(adj, abi.Container, &p.runtime.container(text(ev, abi.Container, abi.ContainerID)).modelObject)...)
	case abi.Synchronize:
		asked := p.askPod(ev, adj)
		pod := p.podOf(text(ev, abi.Pod, abi.PodUID))
		told := p.askContainers(ev, adj, abi.Pod)
		p.grant(append(asked, told...))
		p.endUnrepeated(pod, false)
	case abi.Tick:
		asked := p.askContainers(ev, adj, abi.Node)
		for i := range asked {
			asked[i].wish.tick = true
		}
		p.grant(asked)
		for _, pod := range p.pods {
			p.endUnrepeated(pod, true)
		}
	}
	return nil
}

// endUnrepeated ends what earlier generations of the plugin have asked for in Tick, or in other hooks.
func (p *modelPlugin) endUnrepeated(pod *modelPod, tick bool) {
	earlier := func(w modelWish) bool { return w.plugin == p.id && w.generation != p.generation && w.tick == tick }
	pod.withdraw(earlier)
	for _, c := range p.runtime.containersOf(pod) {
		c.endWishes(earlier)
	}
}

func text(ev plugin.Event, o abi.Object, f abi.Field) string {
	value, errno := ev.Text(o, f)
	if errno != abi.OK {
		panic(errno)
	}
	return value
}

func (p *modelPlugin) askPod(ev plugin.Event, adj *plugin.Adjustment) (asked []modelAsk) {
	of := &p.podOf(text(ev, abi.Pod, abi.PodUID)).modelObject
	for _, want := range slices.Sorted(maps.Keys(p.wants)) {
		if file, ok := strings.CutPrefix(want, "pod "); ok {
			asked = p.told(asked, of, "file "+file, p.wants[want], adj.WriteFile(abi.Pod, file, p.wants[want]))
		}
	}
	return asked
}

func (p *modelPlugin) askContainers(ev plugin.Event, adj *plugin.Adjustment, in abi.Object) (asked []modelAsk) {
	all, _, errno := ev.Containers(in, nil)
	if errno != abi.OK {
		panic(errno)
	}
	for _, o := range all {
		if c := p.runtime.container(text(ev, o, abi.ContainerID)); c != nil && c.state != runtimeapi.ContainerState_CONTAINER_EXITED {
			asked = append(asked, p.ask(adj, o, &c.modelObject)...)
		}
	}
	return asked
}

// ask asks for all that the plugin wants of a container.
func (p *modelPlugin) ask(adj *plugin.Adjustment, o abi.Object, of *modelObject) (asked []modelAsk) {
	for _, want := range slices.Sorted(maps.Keys(p.wants)) {
		kind, name, _ := strings.Cut(want, " ")
		switch value := p.wants[want]; {
		case p.withdraws[want]:
			asked = append(asked, modelAsk{of: of, target: want, wish: modelWish{plugin: p.id}, ends: true})
			if _, err := adj.Withdraw(o, fieldNumber(kind, name), fieldKey(kind, name)); err != nil {
				p.violated("%s cannot withdraw %s: %v", p.id, want, err)
			}
		case kind == "field":
			asked = p.told(asked, of, want, value, set(adj, o, name, value))
		case kind == "file":
			asked = p.told(asked, of, want, value, adj.WriteFile(o, name, value))
		}
	}
	return asked
}

// told notes what the plugin was told: no plugin gets what another one that has asked before has with another value.
func (p *modelPlugin) told(asked []modelAsk, of *modelObject, target, value string, err error) []modelAsk {
	first := modelWish{plugin: p.id}
	if of != nil {
		rest := slices.DeleteFunc(slices.Clone(of.wishes[target]), func(w modelWish) bool { return p.withdrawn(of, target, w.plugin) })
		if len(rest) > 0 {
			first = rest[0]
		}
	}
	switch {
	case p.reviving:
	case err != nil && first.plugin == p.id && p == p.plugins[0]: // a later plugin may meet one of the same call
		p.violated("%s does not get %s = %s of a container or pod, which nobody has before it: %v", p.id, target, value, err)
	case err == nil && first.plugin != p.id && first.value != value && !p.naming[target]:
		p.violated("%s gets %s = %s of %s, which %s has with %s", p.id, target, value, of.group, first.plugin, first.value)
	}
	if err != nil {
		return asked
	}
	return append(asked, modelAsk{of: of, target: target, wish: modelWish{plugin: p.id, value: value, generation: p.generation}})
}

// withdrawn reports whether a plugin has withdrawn a wish in the update that is under way.
func (w *modelWorld) withdrawn(of *modelObject, target, plugin string) bool {
	return w.naming != nil && slices.ContainsFunc(w.asked, func(a modelAsk) bool {
		return a.ends && a.of == of && a.target == target && a.wish.plugin == plugin
	})
}

// grant notes wishes that count from now on.
func (w *modelWorld) grant(asked []modelAsk) {
	changed := map[*modelObject]bool{}
	for _, a := range asked {
		if a.ends {
			w.endWish(a)
			continue
		}
		wishes := a.of.wishes[a.target]
		i := slices.IndexFunc(wishes, func(has modelWish) bool { return has.plugin == a.wish.plugin })
		switch {
		case i < 0:
			a.of.wishes[a.target] = append(wishes, a.wish)
			changed[a.of] = true
		default:
			changed[a.of] = changed[a.of] || wishes[i].value != a.wish.value
			wishes[i] = a.wish
		}
	}
	for _, c := range w.runtime.all() {
		if changed[&c.modelObject] {
			c.changes++
		}
	}
}

// endWish ends the wish for one target of a container.
func (w *modelWorld) endWish(a modelAsk) {
	for _, c := range w.runtime.all() {
		if &c.modelObject != a.of {
			continue
		}
		c.wishes[a.target] = slices.DeleteFunc(c.wishes[a.target], func(wish modelWish) bool {
			ends := wish.plugin == a.wish.plugin
			if ends {
				c.keep(a.target, wish.value)
				c.changes++
			}
			return ends
		})
	}
}

// withdraw ends wishes, and reports whether there was one.
func (o *modelObject) withdraw(ends func(modelWish) bool) (any bool) {
	for target, wishes := range o.wishes {
		o.wishes[target] = slices.DeleteFunc(wishes, ends)
		any = any || len(o.wishes[target]) < len(wishes)
	}
	return any
}

// endWishes is withdraw for a container, which keeps what CRI cannot bring back.
func (c *modelContainer) endWishes(ends func(modelWish) bool) {
	for target, wishes := range c.wishes {
		for _, w := range wishes {
			if ends(w) {
				c.keep(target, w.value)
			}
		}
	}
	if c.withdraw(ends) {
		c.changes++
	}
}

// keep notes that a value may stay that CRI cannot replace by kubelet's.
func (c *modelContainer) keep(target, value string) {
	field, ok := strings.CutPrefix(target, "field ")
	if ok && (c.kubelet[field] == "" || strings.HasPrefix(field, "unified")) {
		if c.former[field] == nil {
			c.former[field] = map[string]bool{}
		}
		c.former[field][value], c.former[field][c.has[field]] = true, true
	}
}

// present is what intercept.End asks for.
func (w *modelWorld) presentOf(id string) *intercept.Generation {
	for _, p := range w.plugins {
		if p.id == id && p.present && !w.bypassed {
			m := p.member()
			return &intercept.Generation{Name: p.generation, Nothing: p.dry, Member: &m}
		}
	}
	return nil
}

// next gives a plugin new files, which may be those of another one.
func (p *modelPlugin) next() {
	p.serial++
	p.generation = fmt.Sprint("g", p.serial)
	p.synchronized = intercept.NewSynchronized()
	p.wants, p.withdraws = map[string]string{}, map[string]bool{}
	for _, f := range setFields {
		if p.r.IntN(3) == 0 {
			p.wants["field "+f] = fieldValue(f, p.r.IntN(4))
		}
	}
	for _, f := range p.files {
		if p.r.IntN(3) == 0 {
			p.wants["file "+f] = fileValue(f, p.r.IntN(4))
		}
	}
	if p.r.IntN(3) == 0 {
		p.wants["pod pids.max"] = fileValue("pids.max", p.r.IntN(4))
	}
}
