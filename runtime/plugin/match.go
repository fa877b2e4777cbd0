package plugin

import (
	"path"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Matches say about which pods and containers a plugin is asked, by hook: all
// that stand for a hook must accept, and a hook without any accepts everything.
// They are judged before the plugin is asked, so that an event which does not
// match wakes nobody.
type Matches map[abi.Hook][]abi.Match

// And returns the matches narrowed by one more for each of these hooks. It does
// not change those that it was called on.
func (m Matches) And(hooks abi.HookSet, more abi.Match) Matches {
	all := make(Matches, len(m))
	for hook, list := range m {
		all[hook] = list[:len(list):len(list)]
	}
	for _, info := range abi.Hooks {
		if hooks.Has(info.Hook) {
			all[info.Hook] = append(all[info.Hook], more)
		}
	}
	return all
}

// Accept reports whether everything that stands for the event's hook does. Labels
// and annotations are those that earlier plugins of the chain left.
func (m Matches) Accept(ev Event) bool {
	if len(m) == 0 || ev.Hook() == abi.Tick { // which is about no pod
		return true
	}
	list := m[ev.Hook()]
	for i := range list {
		if !accepts(&list[i], ev) {
			return false
		}
	}
	return true
}

func accepts(m *abi.Match, ev Event) bool {
	return listAccepts(m.Namespaces, ev, abi.Pod, abi.PodNamespace) &&
		listAccepts(m.QoS, ev, abi.Pod, abi.PodQoS) &&
		listAccepts(m.RuntimeHandlers, ev, abi.Pod, abi.PodRuntimeHandler) &&
		listAccepts(m.Containers, ev, abi.Container, abi.ContainerName) &&
		mapAccepts(m.Labels, ev, abi.PodLabels) &&
		mapAccepts(m.Annotations, ev, abi.PodAnnotations)
}

func listAccepts(globs []string, ev Event, o abi.Object, f abi.Field) bool {
	if len(globs) == 0 {
		return true
	}
	text, errno := ev.Text(o, f)
	if errno != abi.OK {
		return o == abi.Container // the hook is one of pods
	}
	within, asked := false, false
	for _, glob := range globs {
		glob, not := strings.CutPrefix(glob, "!")
		fits, _ := path.Match(glob, text) // CheckMatch has seen that it is a glob
		if not && fits {
			return false
		}
		within, asked = within || fits && !not, asked || !not
	}
	return within || !asked
}

func mapAccepts(wanted map[string]string, ev Event, f abi.Field) bool {
	for key, want := range wanted {
		value, errno := ev.Lookup(abi.Pod, f, key)
		want, not := strings.CutPrefix(want, "!")
		fits := errno == abi.OK && (want == value || want == "*" || want == "")
		if fits == not {
			return false
		}
	}
	return true
}
