package intercept

import (
	"context"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Generation is what the files of a plugin say at one time of the values that it may want.
type Generation struct {
	Name    string         // see enforce.Wish
	Nothing bool           // it wants none, as in dry-run
	Match   abi.Match      // the operator's
	Next    string         // name of the generation that is to take its place, and may be told of pods already; "": there is none
	Failed  string         // name of the generation that has failed its probation; "": none has
	Member  *plugin.Member // its place; nil until it is active
}

// End ends the wishes of plugins that cannot want them any more, whatever they do, and has kubelet's values brought back:
// those of a plugin without a generation, or with one that wants nothing, or of one that has failed, and of earlier
// generations of a plugin those that the present one may not have, or could not ask for again. Others of earlier generations
// end when the present one has not repeated them in Synchronize. Those of the next one stay. present returns nil if there is
// no generation of the plugin. It must not use the ledger.
func End(ctx context.Context, values *enforce.Enforcer, present func(plugin string) *Generation) enforce.Queued {
	return values.Withdraw(ctx, func(of enforce.ID, t enforce.Target, w enforce.Wish) bool {
		g := present(w.Plugin)
		switch {
		case g == nil:
			return true
		case g.Next != "" && w.Generation == g.Next:
			return false
		case g.Nothing || w.Generation == g.Name:
			return g.Nothing
		case g.Failed != "" && w.Generation == g.Failed:
			return true
		}
		switch m := g.Member; { // whether it cannot repeat the wish of an earlier one
		case outside(values, g.Match, of):
			return true
		case m == nil:
			return false
		case needs(of, t, w)&^m.Capabilities != 0:
			return true
		default:
			repeats := m.Hooks.Has(abi.Synchronize) && (of.Container == "" || mayAskForContainers(m))
			return !m.Hooks.Has(w.Hook) && !repeats
		}
	})
}

// outside reports whether a match excludes a pod or container. Of what the store lacks, or the runtime could not
// describe, that is not known yet.
func outside(values *enforce.Enforcer, match abi.Match, of enforce.ID) bool {
	sandbox, ok := values.Sandbox(of)
	pod, known := values.Store.Pod(sandbox)
	if !ok || !known || pod.ByListAlone() {
		return false
	}
	o := matched{pod: crifield.PodOf(pod)}
	if of.Container != "" {
		c, known := values.Store.Container(of.Container)
		if !known || c.ByListAlone() {
			return false
		}
		o.container = crifield.ContainerOf(c)
	}
	return !plugin.Accepts(&match, o)
}

// needs returns the capabilities that a wish needs.
func needs(of enforce.ID, t enforce.Target, w enforce.Wish) (all abi.CapabilitySet) {
	if _, file := t.File(); file {
		all |= abi.CapabilitySetOf(abi.CgroupWrite)
	} else if change, ok := enforce.ChangeTo(t, w.Value); ok {
		all |= abi.CapabilitySetOf(plugin.FieldOf(abi.Container, change.Field).Writing)
	}
	if w.Raises {
		all |= abi.CapabilitySetOf(abi.PodLimits)
	}
	if about := w.Hook.Info().Object; about == abi.Event || of.Container != "" && about != abi.Container { // it was another object's
		all |= abi.CapabilitySetOf(abi.UpdateOthers)
	}
	return all
}
