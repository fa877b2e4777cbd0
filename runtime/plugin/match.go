package plugin

import (
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Matches say for which pods and containers a plugin is called, by hook: all
// that stand for a hook must accept, and a hook without any accepts everything.
// They are judged before the plugin is called, so that an event which does not
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
		if !Accepts(&list[i], ev) {
			return false
		}
	}
	return true
}

// Matched is what a match looks at: abi.Pod, and abi.Container if there is one. Every Event is one.
type Matched interface {
	Text(abi.Object, abi.Field) (string, abi.Errno)
	Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno)
}

// Accepts reports whether a match accepts a pod or container. If nobody told the value of a field
// that the match names, it does not, even if the match only excludes values: it may be one of them.
func Accepts(m *abi.Match, of Matched) bool {
	switch {
	case !listAccepts(m.Namespaces, of, abi.Pod, abi.PodNamespace),
		!listAccepts(m.QoS, of, abi.Pod, abi.PodQoS),
		!listAccepts(m.RuntimeHandlers, of, abi.Pod, abi.PodRuntimeHandler),
		!listAccepts(m.Containers, of, abi.Container, abi.ContainerName):
		return false
	}
	return mapAccepts(m.Labels, of, abi.PodLabels) && mapAccepts(m.Annotations, of, abi.PodAnnotations)
}

func listAccepts(globs []string, of Matched, o abi.Object, f abi.Field) bool {
	if len(globs) == 0 {
		return true
	}
	text, errno := of.Text(o, f)
	switch errno {
	case abi.OK:
	case abi.Unsupported:
		return false
	default:
		return o == abi.Container || !wants(globs) // the hook is one of pods, or of an image alone
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

// wants reports whether the list lets in only what fits it, and not all but that.
func wants(globs []string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return !strings.HasPrefix(glob, "!") })
}

func mapAccepts(wanted map[string]string, of Matched, f abi.Field) bool {
	for key, want := range wanted {
		value, errno := of.Lookup(abi.Pod, f, key)
		want, not := strings.CutPrefix(want, "!")
		any := want == "*" || want == ""
		fits := errno == abi.OK && (any || want == value)
		if fits == not || errno == abi.Unsupported {
			return false
		}
	}
	return true
}

// NeverFits returns the key of a match by which no event of the hook fits it, whatever
// happens; "" if one may. An image is removed for no pod, and what asks for something
// that only a pod has waits for ever.
func NeverFits(hook abi.Hook, m abi.Match) (key string) {
	switch {
	case hook != abi.PreRemoveImage && hook != abi.PostRemoveImage:
		return ""
	case wants(m.Namespaces):
		return "namespaces"
	case wants(m.QoS):
		return "qos"
	case wants(m.RuntimeHandlers):
		return "runtime-handlers"
	case wants(slices.Collect(maps.Values(m.Labels))):
		return "labels"
	case wants(slices.Collect(maps.Values(m.Annotations))):
		return "annotations"
	}
	return ""
}

// BoundsOf returns an operator's match as the Bounds of a member.
func BoundsOf(m abi.Match) *abi.Match {
	if reflect.DeepEqual(m, abi.Match{}) {
		return nil
	}
	return &m
}

// ReadBounds returns the match of what the plugin finds and reads by handles; nil: of all.
func (s *scope) ReadBounds() *abi.Match {
	if s.of.Capabilities.Has(abi.StoreReadAll) {
		return nil
	}
	return s.of.Bounds
}

var qosClasses = []string{"Guaranteed", "Burstable", "BestEffort"}

// CheckMatch says what is wrong with a match that Matches could not judge, or
// that would fit nothing for ever.
func CheckMatch(m abi.Match) error {
	for _, of := range []struct {
		key   string
		globs []string
	}{{"namespaces", m.Namespaces}, {"runtime-handlers", m.RuntimeHandlers}, {"containers", m.Containers}} {
		for _, glob := range of.globs {
			if _, err := path.Match(strings.TrimPrefix(glob, "!"), ""); err != nil {
				return fmt.Errorf("%s: %.64q is not a glob", of.key, glob)
			}
		}
	}
	for _, class := range m.QoS {
		if !slices.Contains(qosClasses, strings.TrimPrefix(class, "!")) {
			return fmt.Errorf("qos: %.64q is none of %s", class, strings.Join(qosClasses, ", "))
		}
	}
	return nil
}
