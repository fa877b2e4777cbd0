package plugin_test

import (
	"context"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// described is an event of a container "app" of a pod, or of the pod alone.
type described struct {
	subject
	texts               map[abi.Field]string // of the pod
	untold              map[abi.Field]bool   // of the pod, what the runtime did not report
	container           string
	labels, annotations map[string]string
}

func (d *described) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	switch {
	case o == abi.Pod && d.untold[f]:
		return "", abi.Unsupported
	case o == abi.Pod:
		return d.texts[f], abi.OK
	case o == abi.Container && f == abi.ContainerName && d.container != "":
		return d.container, abi.OK
	}
	return "", abi.NotFound
}

func (d *described) Lookup(_ abi.Object, f abi.Field, key string) (string, abi.Errno) {
	m := d.labels
	if f == abi.PodAnnotations {
		m = d.annotations
	}
	if v, ok := m[key]; ok {
		return v, abi.OK
	}
	if d.untold[f] {
		return "", abi.Unsupported
	}
	return "", abi.NotFound
}

func goldPod(container string) *described {
	return &described{
		subject: subject{hook: abi.PreCreateContainer}, container: container,
		texts:       map[abi.Field]string{abi.PodNamespace: "prod-shop", abi.PodQoS: "Burstable", abi.PodRuntimeHandler: ""},
		labels:      map[string]string{"tier": "gold", "empty": ""},
		annotations: map[string]string{"example.com/path": "/a/b"},
	}
}

func matches(m abi.Match) plugin.Matches {
	return plugin.Matches{}.And(abi.HookSetOf(abi.PreCreateContainer), m)
}

func TestMatch(t *testing.T) {
	type (
		match = abi.Match
		list  = []string
		pairs = map[string]string
	)
	for _, test := range []struct {
		name  string
		match match
		want  bool
	}{
		{"nothing wanted", match{}, true},
		{"namespace", match{Namespaces: list{"prod-shop"}}, true},
		{"a part of it", match{Namespaces: list{"prod", "shop"}}, false},
		{"one of several", match{Namespaces: list{"test", "prod-*"}}, true},
		{"a class of letters", match{Namespaces: list{"prod-[r-t]hop"}}, true},
		{"glob at the front", match{Namespaces: list{"*-test"}}, false},
		{"none", match{Namespaces: list{"!kube-*"}}, true},
		{"not this one", match{Namespaces: list{"!prod-*"}}, false},
		{"one, but not that", match{Namespaces: list{"prod-*", "!prod-shop"}}, false},
		{"that, but not this, in whatever order", match{Namespaces: list{"!prod-bank", "prod-*"}}, true},
		{"only others", match{Namespaces: list{"test-*", "!prod-bank"}}, false},
		{"label", match{Labels: pairs{"tier": "gold"}}, true},
		{"label of another value", match{Labels: pairs{"tier": "silver"}}, false},
		{"label that is there", match{Labels: pairs{"tier": "*"}}, true},
		{"label that is there and empty", match{Labels: pairs{"empty": "*"}}, true},
		{"label that is not there", match{Labels: pairs{"team": "*"}}, false},
		{"label of any value", match{Labels: pairs{"tier": ""}}, true},
		{"label of any value that is not there", match{Labels: pairs{"team": ""}}, false},
		{"values are no globs", match{Labels: pairs{"tier": "g*"}}, false},
		{"no such label", match{Labels: pairs{"team": "!*"}}, true},
		{"no label of this value", match{Labels: pairs{"tier": "!gold"}}, false},
		{"no label of that value", match{Labels: pairs{"tier": "!silver"}}, true},
		{"all of several labels", match{Labels: pairs{"tier": "gold", "team": "*"}}, false},
		{"annotation", match{Annotations: pairs{"example.com/path": "/a/b"}}, true},
		{"a label is no annotation", match{Annotations: pairs{"tier": "gold"}}, false},
		{"qos", match{QoS: list{"Burstable", "BestEffort"}}, true},
		{"other qos", match{QoS: list{"Guaranteed"}}, false},
		{"default handler", match{RuntimeHandlers: list{""}}, true},
		{"other handler", match{RuntimeHandlers: list{"kata*"}}, false},
		{"container", match{Containers: list{"app"}}, true},
		{"other container", match{Containers: list{"sidecar"}}, false},
		{"all must accept", match{Namespaces: list{"prod-*"}, QoS: list{"Guaranteed"}}, false},
	} {
		if got := matches(test.match).Accept(goldPod("app")); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// What the runtime did not report of a pod may be what the operator excludes, so no match of it accepts the pod.
func TestMatchOfWhatIsNotTold(t *testing.T) {
	type list = []string
	for _, match := range []abi.Match{
		{QoS: list{"Burstable"}}, {QoS: list{"!Guaranteed"}}, {RuntimeHandlers: list{"!kata"}}, {Labels: map[string]string{"team": "!*"}},
	} {
		pod := goldPod("app")
		if !matches(match).Accept(pod) {
			t.Errorf("%+v does not accept the pod", match)
		}
		pod.untold = map[abi.Field]bool{abi.PodQoS: true, abi.PodRuntimeHandler: true, abi.PodLabels: true}
		if matches(match).Accept(pod) {
			t.Errorf("%+v accepts a pod of which that is not known", match)
		}
	}
}

// TestMatchOfContainersSaysNothingOfPods: a plugin for some containers may hear
// of the pods that they will be in.
func TestMatchOfContainersSaysNothingOfPods(t *testing.T) {
	if !matches(abi.Match{Containers: []string{"sidecar"}}).Accept(goldPod("")) {
		t.Error("an event of a pod is not accepted")
	}
}

func TestMatchesAreByHook(t *testing.T) {
	before := plugin.Matches{abi.PreCreateContainer: {{Namespaces: []string{"prod-*"}}}}
	after := before.And(abi.HookSetOf(abi.PreCreateContainer, abi.PreStartContainer), abi.Match{Labels: map[string]string{"tier": "silver"}})
	for hook, want := range map[abi.Hook][2]bool{
		abi.PreCreateContainer: {true, false}, abi.PreStartContainer: {true, false}, abi.PostStopContainer: {true, true},
	} {
		ev := goldPod("app")
		ev.hook = hook
		if got := [2]bool{before.Accept(ev), after.Accept(ev)}; got != want {
			t.Errorf("%s: accepted before and after: %v, want %v", hook, got, want)
		}
	}
}

// TestUnmatchedWakesNobody: neither the plugin nor the observer is told, and
// what the next member wants goes on.
func TestUnmatchedWakesNobody(t *testing.T) {
	asked := member("10-other", plugin.Fail, func(context.Context, plugin.Event, *plugin.Adjustment) error {
		t.Error("a plugin was asked about a pod that it does not match")
		return nil
	})
	asked.Match = plugin.Matches{}.And(asked.Hooks, abi.Match{Namespaces: []string{"test"}})
	both := member("20-both", plugin.Fail, set(abi.CPUShares, 100))
	both.Match = plugin.Matches{}.And(both.Hooks, abi.Match{Namespaces: []string{"prod-*"}})
	var observed []string
	chain := plugin.NewChain(onCall(func(c *observe.HookCalled) { observed = append(observed, c.Plugin) }), 2, asked, both)
	s := goldPod("app")
	if owned, err := chain.Dispatch(t.Context(), nil, s); err != nil || len(owned) != 1 || len(observed) != 1 || observed[0] != "20-both" {
		t.Errorf("owned %v, asked %q, error %v", owned, observed, err)
	}
}

// A tick is about no pod, so no match keeps it away.
func TestMatchOfATick(t *testing.T) {
	m := plugin.Matches{}.And(abi.HookSetOf(abi.Tick, abi.PrePullImage), abi.Match{Namespaces: []string{"prod"}})
	if !m.Accept(podless{hook: abi.Tick}) || m.Accept(podless{hook: abi.PrePullImage}) {
		t.Error("want a tick and no image of nobody's")
	}
}

// What rules pods out lets in what is about none; NeverFits and Accept agree about what
// asks for a pod.
func TestMatchOfAnImageOfNobodys(t *testing.T) {
	type list = []string
	type pairs = map[string]string
	for _, test := range []struct {
		match abi.Match
		key   string // by which it does not fit; "" if it does
	}{
		{abi.Match{}, ""},
		{abi.Match{Namespaces: list{"!kube-*"}, Labels: pairs{"team": "!*"}}, ""},
		{abi.Match{Containers: list{"app"}}, ""},
		{abi.Match{Namespaces: list{"!kube-*", "prod"}}, "namespaces"},
		{abi.Match{QoS: list{"Burstable"}}, "qos"},
		{abi.Match{RuntimeHandlers: list{""}}, "runtime-handlers"},
		{abi.Match{Labels: pairs{"team": "!*", "tier": ""}}, "labels"},
		{abi.Match{Annotations: pairs{"team": "a"}}, "annotations"},
	} {
		for _, hook := range []abi.Hook{abi.PreRemoveImage, abi.PostRemoveImage} {
			fits := plugin.Matches{hook: {test.match}}.Accept(podless{hook: hook})
			if key := plugin.NeverFits(hook, test.match); key != test.key || fits != (key == "") {
				t.Errorf("%s, %+v: fits: %v, key %q, want %q", hook, test.match, fits, key, test.key)
			}
		}
		if key := plugin.NeverFits(abi.PrePullImage, test.match); key != "" {
			t.Errorf("an image that a pod may be pulled for: %q", key)
		}
	}
}

// podless is an event without a pod.
type podless struct {
	plugin.Event
	hook abi.Hook
}

func (p podless) Hook() abi.Hook                               { return p.hook }
func (podless) Text(abi.Object, abi.Field) (string, abi.Errno) { return "", abi.NotFound }
func (podless) Lookup(abi.Object, abi.Field, string) (string, abi.Errno) {
	return "", abi.NotFound
}
