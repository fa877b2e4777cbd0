package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// steps lets time pass until there is no update, or the time is over. act is what a node does.
func (f *fleet) steps(atMost time.Duration, act func(i int)) (last string) {
	for end := f.now.Add(atMost); f.now.Before(end); f.now = f.now.Add(30 * time.Second) {
		f.control()
		if f.status.Update == nil {
			return last
		}
		last = f.status.Update.Step
		for i := range f.nodes {
			act(i)
		}
	}
	return last
}

// TestOneNodeRefuses: a node that refuses counts among the nodes whose turn it is. It is no canary, and alone stops nothing.
func TestOneNodeRefuses(t *testing.T) {
	f := newFleet(3000)
	f.steps(5*time.Hour, func(i int) {
		if f.act(i, never); i == 2999 {
			next := &v1alpha1.Next{Revision: "r1", State: v1alpha1.NextRefused, Message: "too old"}
			f.nodes[i].Report = &v1alpha1.PluginReport{Name: "50-p", Next: next}
		}
	})
	if f.status.Stable.Revision != "r1" {
		t.Errorf("one of 3,000 nodes refuses: stable is %s, rolled back %q, %+v", f.status.Stable.Revision, f.status.RolledBack, f.status.Examples)
	}
}

// TestNodeDiesBeforeItReports: nodes become NotReady before their agents have said that they have switched.
func TestNodeDiesBeforeItReports(t *testing.T) {
	for step, most := range map[string]int{"Canary": 1, "50%": 400} {
		f, died := newFleet(1000), 0
		last := f.steps(5*time.Hour, func(i int) {
			n := &f.nodes[i]
			switches := plan.Choose(&f.status, n.Name).Revision == "r1" && (n.Report == nil || n.Report.Revision != "r1")
			if u := f.status.Update; u.Step == step && n.Ready && switches {
				n.Ready, n.Changed = false, f.now.Add(20*time.Second)
				died++
			}
			f.act(i, never)
		})
		if f.status.RolledBack != "r1" || last != step || died > most {
			t.Errorf("nodes die at %s: %d died, the last step was %s, rolled back %q", step, died, last, f.status.RolledBack)
		}
	}
}

// TestNodesJoinLate: a node has the time to say that it has switched from when it became Ready.
func TestNodesJoinLate(t *testing.T) {
	f := newFleet(1000)
	f.to(t, "100%")
	f.steps(6*time.Minute, func(i int) { f.act(i, never) })
	for i := range 30 {
		f.nodes = append(f.nodes, plan.Node{Name: fmt.Sprintf("new-%d", i), Ready: true, Changed: f.now.Add(-20 * time.Second)})
	}
	if f.control(); f.status.Nodes.Silent != 0 || f.status.Update == nil {
		t.Errorf("30 nodes have been Ready for 20 s: %+v, rolled back %q", f.status.Nodes, f.status.RolledBack)
	}
}

// TestNodesAreSelectedLate: a node that has been Ready for long has the same time from when it is to have the plugin.
func TestNodesAreSelectedLate(t *testing.T) {
	f := newFleet(10)
	f.to(t, "100%")
	f.steps(6*time.Minute, func(i int) { f.act(i, never) })
	f.nodes = append(f.nodes, plan.Node{Name: "selected", Ready: true, Changed: f.now.Add(-time.Hour), Joined: f.now})
	f.now = f.now.Add(plan.Silence - time.Second)
	if f.control(); f.status.Nodes.Silent != 0 || f.status.Update == nil {
		t.Errorf("before it is silent: %+v, rolled back %q", f.status.Nodes, f.status.RolledBack)
	}
	f.now = f.now.Add(time.Second)
	if f.control(); f.status.RolledBack != "r1" {
		t.Errorf("a node that says nothing for %v: %+v", plan.Silence, f.status.Nodes)
	}
}

// TestStepsChange: the next step is the smallest of the new ones that adds a node.
func TestStepsChange(t *testing.T) {
	f := newFleet(1000)
	f.to(t, "10%")
	f.rollout.Steps = []int32{20, 50, 100}
	for f.status.Update != nil && f.status.Update.Step == "10%" {
		f.steps(30*time.Second, func(i int) { f.act(i, never) })
	}
	if u := f.status.Update; u == nil || u.Step != "20%" {
		t.Errorf("the step after 10%% is %+v, want 20%%", u)
	}
}

// TestNodesAreReplaced: other nodes take the place of all, as when a cluster gets new machines. If it is the turn of none of these, a
// canary among them goes first.
func TestNodesAreReplaced(t *testing.T) {
	f := newFleet(100)
	f.to(t, "10%")
	f.nodes = nil
	for i := range 3 {
		f.nodes = append(f.nodes, plan.Node{Name: fmt.Sprintf("new-%d", i), Ready: true, Changed: f.now})
	}
	if n := f.may(f.nodes); n > 0 {
		t.Fatalf("it is the turn of %d of the new nodes", n)
	}
	if f.run(never, 10*time.Hour); f.status.Stable.Revision != "r1" {
		t.Errorf("after ten hours the update is %+v, of %+v", f.status.Update, f.status.Nodes)
	}
}

// TestRemovalOfSilentNodes: a removal is not rolled back, since nothing could follow it. Another canary takes the place of a silent one,
// and no step waits for it. The object does.
func TestRemovalOfSilentNodes(t *testing.T) {
	f := newFleet(100)
	f.run(never, 10*time.Hour)
	f.desired = v1alpha1.NoRevision
	f.control()
	f.control()
	silent := f.status.Update.Canaries[0]
	f.steps(5*time.Hour, func(i int) {
		if f.nodes[i].Name != silent {
			f.act(i, never)
		}
		if gone := 100 - f.have("r1"); gone > f.may(f.nodes) {
			t.Fatalf("%d nodes have removed the plugin, and %d may: %+v", gone, f.may(f.nodes), f.status.Update)
		}
	})
	m := f.status.Conditions[0].Message
	if f.have("r1") != 1 || f.status.Update != nil || f.status.RolledBack != "" || !strings.HasSuffix(m, ": "+silent) {
		t.Errorf("one node is silent: %d have the plugin, the message is %q, and the status %+v", f.have("r1"), m, f.status)
	}

	f = newFleet(10)
	f.run(never, 10*time.Hour)
	f.desired = v1alpha1.NoRevision
	f.steps(5*time.Hour, func(int) {})
	if u := f.status.Update; u == nil || u.Step != "Canary" || f.have("r1") != 10 {
		t.Errorf("all nodes are silent: the status is %+v", f.status)
	}
	f.run(never, 10*time.Hour)
	if f.have("r1") != 0 || f.status.Update != nil {
		t.Errorf("the nodes are back: %d have the plugin, and the status is %+v", f.have("r1"), f.status)
	}
}

// TestOrphanIsNotStable: what one node has of an object before goes to no others.
func TestOrphanIsNotStable(t *testing.T) {
	f := newFleet(3000)
	f.nodes[7].Report = &v1alpha1.PluginReport{Name: "50-p", Revision: "r0", Phase: v1alpha1.Orphaned, Since: metav1.NewTime(f.now)}
	f.control()
	if c := plan.Choose(&f.status, "node-9"); f.status.Stable.Revision != v1alpha1.NoRevision || c.Revision != v1alpha1.NoRevision {
		t.Errorf("stable is %s, and another node is to have %s", f.status.Stable.Revision, c.Revision)
	}
}

// TestRemovalAfterCanaryIsAway: a step of a removal whose nodes are silent does not wait for them either if the canary is away, which has
// removed the plugin.
func TestRemovalAfterCanaryIsAway(t *testing.T) {
	f := newFleet(3)
	f.run(never, 10*time.Hour)
	f.desired = v1alpha1.NoRevision
	f.to(t, "Canary")
	canary, silent := f.status.Update.Canaries[0], ""
	f.steps(2*time.Hour, func(i int) {
		n := &f.nodes[i]
		if silent == "" && n.Name != canary && plan.Choose(&f.status, n.Name).Revision == v1alpha1.NoRevision {
			silent = n.Name
		}
		if n.Name != silent {
			f.act(i, never)
		}
		n.Ready = n.Name != canary || silent == ""
	})
	if f.have("r1") != 1 || f.status.Update != nil {
		t.Errorf("%d nodes have the plugin, and not the silent one alone: the status is %+v", f.have("r1"), f.status)
	}
}
