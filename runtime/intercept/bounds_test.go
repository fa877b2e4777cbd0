package intercept_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// bounded is on for a plugin whose operator wrote this match.
func bounded(hook abi.Hook, match abi.Match, f function) plugin.Member {
	m := on(hook, f)
	m.Capabilities &^= abi.CapabilitySetOf(abi.StoreReadAll)
	m.Match, m.Bounds = m.Match.And(m.Hooks, match), plugin.BoundsOf(match)
	return m
}

// runTwoPods runs pod1 of namespace prod with the containers c1, app, and c2, log, and pod2 of namespace test with
// c3, app.
func (n *node) runTwoPods() {
	n.t.Helper()
	n.runPod()
	log := createRequest()
	log.Config.Metadata.Name = "log"
	n.createAs(log, "c2")
	pod := podConfig()
	pod.Metadata.Namespace, pod.Metadata.Uid, pod.Labels = "test", "u2", map[string]string{"app": "db"}
	pod.Linux.CgroupParent = "/kubepods/podu2"
	_, err := n.call(n.t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: pod},
		&runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod2"})
	n.must(err)
	c := createRequest()
	c.PodSandboxId, c.SandboxConfig = "pod2", pod
	n.createAs(c, "c3")
	n.must(n.queue.Drain(n.t.Context()))
}

func (n *node) createAs(c *runtimeapi.CreateContainerRequest, id string) {
	n.t.Helper()
	_, err := n.call(n.t.Context(), "CreateContainer", c, &runtimeapi.CreateContainerResponse{ContainerId: id})
	n.must(err)
}

// found are the ids of all that a plugin finds by every way, and a fault if the ways differ.
func found(ev plugin.Event, match *abi.Match) (ids []string) {
	id := func(o abi.Object) string {
		field := abi.PodID
		if ev.Kind(o) == abi.Container {
			field = abi.ContainerID
		}
		text, _ := ev.Text(o, field)
		return text
	}
	all, _, _ := ev.Pods("", match)
	ofNode, _, _ := ev.Containers(abi.Node, match)
	var ofPods []abi.Object
	for _, pod := range all {
		in, _, _ := ev.Containers(pod, match)
		ofPods = append(ofPods, in...)
	}
	for _, o := range append(all, ofNode...) {
		ids = append(ids, id(o))
	}
	if !slices.Equal(ofNode, ofPods) {
		ids = append(ids, fmt.Sprintf("the node has %v, its pods %v", ofNode, ofPods))
	}
	for kind, names := range map[int32][]string{
		abi.ByPodID: {"pod1", "pod2"}, abi.ByPodUID: {"u1", "u2"}, abi.ByPodName: {"prod/web", "test/web"}, abi.ByContainerID: {"c1", "c2", "c3"},
	} {
		for _, name := range names {
			o, errno := ev.Find(kind, name, match)
			if listed := slices.Contains(all, o) || slices.Contains(ofNode, o); listed != (errno == abi.OK) || !listed && errno != abi.NotFound {
				ids = append(ids, fmt.Sprintf("%s by name is %d, %v", name, o, errno))
			}
		}
	}
	for _, namespace := range []string{"prod", "test"} {
		in, _, _ := ev.Pods(namespace, match)
		for _, o := range in {
			if !slices.Contains(all, o) {
				ids = append(ids, fmt.Sprintf("%s is listed in %s alone", id(o), namespace))
			}
		}
	}
	return ids
}

// A Tick finds what the operator's match accepts, and nothing else.
func TestMatchBoundsWhatATickFinds(t *testing.T) {
	type list = []string
	for _, tt := range []struct {
		name  string
		match abi.Match
		want  list
	}{
		{"no match", abi.Match{}, list{"pod1", "pod2", "c1", "c2", "c3"}},
		{"a namespace", abi.Match{Namespaces: list{"test"}}, list{"pod2", "c3"}},
		{"all but one", abi.Match{Namespaces: list{"!test"}}, list{"pod1", "c1", "c2"}},
		{"a namespace without pods", abi.Match{Namespaces: list{"other"}}, nil},
		{"a label", abi.Match{Labels: map[string]string{"app": "db"}}, list{"pod2", "c3"}},
		{"an annotation that none has", abi.Match{Annotations: map[string]string{"example.com/tier": "silver"}}, nil},
		{"a runtime handler", abi.Match{RuntimeHandlers: list{"runc"}}, list{"pod1", "c1", "c2"}},
		{"a QoS class", abi.Match{QoS: list{"Guaranteed"}}, list{"pod2", "c3"}},
		{"containers, of whichever pod", abi.Match{Containers: list{"app"}}, list{"pod1", "pod2", "c1", "c3"}},
		{"containers of a namespace", abi.Match{Namespaces: list{"prod"}, Containers: list{"!app"}}, list{"pod1", "c2"}},
	} {
		n := newNode(t, nil)
		n.runTwoPods()
		var got list
		m := bounded(abi.Tick, tt.match, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			got = found(ev, adj.ReadBounds())
			return nil
		})
		intercept.Tick(t.Context(), n.options, m, "")
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
	}
}

// A plugin pays for what the host went through, also if the match left little of it.
func TestMatchedListsCountAll(t *testing.T) {
	n := newNode(t, nil)
	n.runTwoPods()
	other := abi.Match{Namespaces: []string{"other"}}
	intercept.Tick(t.Context(), n.options, bounded(abi.Tick, other, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		pods, ofPods, _ := ev.Pods("", adj.ReadBounds())
		containers, ofNode, _ := ev.Containers(abi.Node, adj.ReadBounds())
		if len(pods) != 0 || ofPods != 2 || len(containers) != 0 || ofNode != 3 {
			t.Errorf("went through %d pods and %d containers, and found %v and %v", ofPods, ofNode, pods, containers)
		}
		return nil
	}), "")
}

// In a hook a plugin finds the event's own pod and those of its match. Synchronize is not called for others.
func TestMatchBoundsHooks(t *testing.T) {
	for _, hook := range []abi.Hook{abi.PreStartContainer, abi.PostStartContainer, abi.Synchronize} {
		n := newNode(t, nil)
		n.runTwoPods()
		called := 0
		match := abi.Match{Namespaces: []string{"test"}, Containers: []string{"app"}}
		m := bounded(hook, match, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			called++
			if got, want := found(ev, adj.ReadBounds()), []string{"pod2", "c3"}; !slices.Equal(got, want) {
				t.Errorf("%v: found %q, want %q", hook, got, want)
			}
			return nil
		})
		if hook == abi.Synchronize {
			n.must(n.sweep(intercept.NewSynchronized(), m))
		} else {
			other := n.with(withStore(n), m)
			for _, id := range []string{"c1", "c3"} {
				req := &runtimeapi.StartContainerRequest{ContainerId: id}
				_, err := other.call(t.Context(), "StartContainer", req, &runtimeapi.StartContainerResponse{})
				other.must(err)
			}
			other.must(other.queue.Drain(t.Context()))
		}
		if called != 1 {
			t.Errorf("%v: called %d times", hook, called)
		}
	}
}

// A write to what is outside is DENIED, also by a handle that another plugin of the event got, and with
// store.read.all, which lets a plugin read there. Nothing is sent to the runtime, and no file is to be written.
func TestMatchBoundsWrites(t *testing.T) {
	fs, _, _ := scratchGroup(t)
	n := newNode(t, nil, withCgroups(fs))
	n.runTwoPods()
	var outside abi.Object
	first := on(abi.PostStartContainer, func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) (err error) {
		outside, err = neighbour(ev)
		return err
	})
	write := func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		if adj.ReadBounds() == nil {
			_, err := neighbour(ev)
			n.must(err)
		}
		pod, _ := ev.Find(abi.ByPodID, "pod1", nil)
		for what, err := range map[string]error{
			"a resource": adj.SetInt64(outside, abi.Resources+abi.CPUQuota, 20_000), "a file": adj.WriteFile(outside, "memory.high", "4096000"),
			"a file of the pod": adj.WriteFile(pod, "memory.high", "4096000"),
		} {
			if !errors.Is(err, abi.Denied) {
				t.Errorf("a write of %s: %v", what, err)
			}
		}
		in, _ := ev.Find(abi.ByContainerID, "c3", adj.ReadBounds())
		return adj.SetInt64(in, abi.Resources+abi.CPUQuota, 30_000)
	}
	match := abi.Match{Namespaces: []string{"test"}}
	reader := bounded(abi.PostStartContainer, match, write)
	reader.ID, reader.Capabilities = "20-reader", abi.AllCapabilities
	m := n.with(withCgroups(fs), first, bounded(abi.PostStartContainer, match, write), reader)
	_, err := m.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c3"}, &runtimeapi.StartContainerResponse{})
	m.must(err)
	m.must(m.queue.Drain(t.Context()))
	if len(m.backend.updates) != 1 || m.backend.updates[0].GetContainerId() != "c3" {
		t.Errorf("updates %v", m.backend.updates)
	}
	if wishes := m.wish("c1", "memory.high") + m.wish("", "memory.high"); wishes != "" {
		t.Errorf("memory.high outside of the match is to be %s", wishes)
	}
}

// A pod that leaves the match while the plugin runs is not written to. One that ends meanwhile does not leave it: the
// plugin has not failed.
func TestMatchIsLookedAtAgain(t *testing.T) {
	for _, ends := range []bool{true, false} {
		n := newNode(t, nil)
		n.runTwoPods()
		var before, after error
		match := abi.Match{Labels: map[string]string{"app": "web"}}
		intercept.Tick(t.Context(), n.options, bounded(abi.Tick, match, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			o, err := neighbour(ev)
			n.must(err)
			before = adj.SetInt64(o, abi.Resources+abi.CPUQuota, 20_000)
			if ends {
				n.store.Observe(nil, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "pod1"}, &runtimeapi.RemovePodSandboxResponse{})
			} else {
				config := podConfig()
				config.Labels = nil
				n.store.Observe(nil, &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod1"})
			}
			after = adj.SetInt64(o, abi.Resources+abi.CPUShares, 20)
			return nil
		}), "")

		if before != nil || errors.Is(after, abi.Denied) == ends || len(n.backend.updates) > 0 {
			t.Errorf("the pod ends: %v; before %v, after %v, updates %v", ends, before, after, n.backend.updates)
		}
	}
}

// A list does not tell the QoS class of a pod, so a match that names classes does not accept it, not even if it
// excludes others. It accepts the pod once the runtime has described it.
func TestUndescribedPodIsOutsideOfAMatchOfQoS(t *testing.T) {
	for _, hook := range []abi.Hook{abi.Tick, abi.Synchronize} {
		var got []string
		m := bounded(hook, abi.Match{QoS: []string{"!BestEffort"}}, func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
			got = append(got, found(ev, adj.ReadBounds())...)
			return nil
		})
		n := newNode(t, nil)
		n.list("c1")
		n.backend.pods = nil
		known := intercept.NewSynchronized()
		look := func(want ...string) {
			t.Helper()
			got = nil
			n.fill()
			if hook == abi.Tick {
				intercept.Tick(t.Context(), n.options, m, "")
			} else {
				n.must(n.sweep(known, m))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: found %q, want %q", hook, got, want)
			}
		}
		look()
		n.backend.tellPod("pod1", podConfig())
		look("pod1", "c1")
	}
}
