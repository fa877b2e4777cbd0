package plan_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

var seeds = flag.Int("seeds", 60, "how many random fleets to try")

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fleet is nodes whose agents do what Choose says, and the controller's status.
type fleet struct {
	now     time.Time
	rollout v1alpha1.Rollout
	desired string
	status  v1alpha1.NodePluginStatus
	nodes   []plan.Node
	switchT map[string]time.Time // when a node got what it has
}

func newFleet(n int) *fleet {
	f := &fleet{now: start, desired: "r1", switchT: map[string]time.Time{}}
	f.rollout = v1alpha1.Rollout{Steps: []int32{1, 10, 50, 100}, BakeSeconds: 600, MaxFailing: intstr.FromString("2%"), OnFailure: v1alpha1.RollBack}
	for i := range n {
		f.join(fmt.Sprintf("node-%d", i))
	}
	return f
}

func (f *fleet) join(name string) {
	f.nodes = append(f.nodes, plan.Node{Name: name, Ready: true, Changed: f.now.Add(-time.Hour)})
}

// control is one run of the controller.
func (f *fleet) control() {
	f.status = plan.Next(plan.Input{Now: f.now, Rollout: f.rollout, Desired: f.desired, Status: f.status, Nodes: f.nodes})
}

// act has a node's agent do what it is to do, and report it. bad revisions fail in their probation.
func (f *fleet) act(i int, bad func(node, revision string) bool) {
	n := &f.nodes[i]
	if !n.Ready {
		return
	}
	c := plan.Choose(&f.status, n.Name)
	has := v1alpha1.NoRevision
	if n.Report != nil {
		has = n.Report.Revision
	}
	if c.Revision != "" && c.Revision != has {
		has = c.Revision
		f.switchT[n.Name] = f.now
	}
	r := &v1alpha1.PluginReport{Name: "50-p", Revision: has, Phase: v1alpha1.Probation}
	switch {
	case has == v1alpha1.NoRevision && c.Next == "":
		n.Report = nil
		return
	case bad(n.Name, has):
		r.Phase, r.Message = v1alpha1.Failing, "its circuit breaker opened"
	case f.now.Sub(f.switchT[n.Name]) >= c.Probation:
		r.Phase = v1alpha1.Healthy
	}
	if c.Shadow != "" {
		if r.Shadow = (&v1alpha1.ShadowReport{Revision: c.Shadow, Phase: v1alpha1.Healthy}); bad(n.Name, c.Shadow) {
			r.Shadow.Phase, r.Shadow.Message = v1alpha1.Failing, "6 of 100 calls failed"
		}
	}
	if c.Next != "" {
		r.Next = &v1alpha1.Next{Revision: c.Next, State: v1alpha1.NextFetched}
	}
	if r.Since = metav1.NewTime(f.now); n.Report != nil && n.Report.Revision == has && n.Report.Phase == r.Phase {
		r.Since = n.Report.Since
	}
	n.Report = r
}

func never(string, string) bool { return false }

// run lets time pass until there is no update, or the time is over.
func (f *fleet) run(bad func(node, revision string) bool, atMost time.Duration) {
	for end := f.now.Add(atMost); f.now.Before(end); f.now = f.now.Add(30 * time.Second) {
		f.control()
		for i := range f.nodes {
			f.act(i, bad)
		}
		if f.status.Update == nil {
			return
		}
	}
}

func (f *fleet) have(revision string) (n int) {
	for _, node := range f.nodes {
		if node.Report != nil && node.Report.Revision == revision {
			n++
		}
	}
	return n
}

// may is how many of the nodes have the update by the status.
func (f *fleet) may(nodes []plan.Node) (n int) {
	for _, node := range nodes {
		c := plan.Choose(&f.status, node.Name)
		if u := f.status.Update; u != nil && (c.Revision == u.Revision || c.Shadow == u.Revision) {
			n++
		}
	}
	return n
}

// TestSteps has exactly the nodes of each step in it, and ends with all.
func TestSteps(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 99, 100, 1000} {
		f := newFleet(n)
		f.run(never, 10*time.Hour)
		if f.status.Stable.Revision != "r1" {
			t.Fatalf("%d nodes: stable is %s after ten hours, and the update %+v", n, f.status.Stable.Revision, f.status.Update)
		}
		f.desired = "r2"
		f.control()
		steps := map[string]int{}
		for f.status.Update != nil && f.now.Before(start.Add(20*time.Hour)) {
			steps[f.status.Update.Step] = f.may(f.nodes)
			for i := range f.nodes {
				f.act(i, never)
			}
			f.now = f.now.Add(30 * time.Second)
			f.control()
		}
		if f.status.Stable.Revision != "r2" {
			t.Errorf("%d nodes: the second revision is at step %+v", n, f.status.Update)
		}
		want := map[string]int{"Fetch": 0, "Canary": 1, "1%": (n + 99) / 100, "10%": (n + 9) / 10, "50%": (n + 1) / 2, "100%": n}
		for step, has := range steps {
			if has != want[step] {
				t.Errorf("%d nodes: %d have the update at step %s, not %d", n, has, step, want[step])
			}
		}
	}
}

// TestBadRevision stops at the canary, goes back on all nodes, and is not tried again until spec changes.
func TestBadRevision(t *testing.T) {
	f := newFleet(100)
	f.run(never, 10*time.Hour)
	f.desired = "r2"
	bad := func(_, revision string) bool { return revision == "r2" }
	f.run(bad, 10*time.Hour)
	if f.status.RolledBack != "r2" || f.status.Update != nil || f.have("r2") != 0 {
		t.Fatalf("after a revision that fails everywhere %d nodes have it, and the status is %+v", f.have("r2"), f.status)
	}
	if len(f.status.Examples) != 1 || f.status.Examples[0].Message != "its circuit breaker opened" {
		t.Errorf("the examples are %+v, not the canary", f.status.Examples)
	}
	for range 100 {
		f.now = f.now.Add(time.Minute)
		f.control()
		if f.status.Update != nil || f.status.RolledBack != "r2" {
			t.Fatalf("the revision that was rolled back is tried again: %+v", f.status)
		}
	}
	f.desired = "r3"
	f.run(bad, 10*time.Hour)
	if f.status.Stable.Revision != "r3" || f.have("r3") != 100 {
		t.Errorf("%d of 100 nodes have the next revision; stable is %s", f.have("r3"), f.status.Stable.Revision)
	}
}

// TestFirstRevisionFails leaves no node with the plugin.
func TestFirstRevisionFails(t *testing.T) {
	f := newFleet(10)
	f.run(func(string, string) bool { return true }, time.Hour)
	if f.status.RolledBack != "r1" || f.status.Stable.Revision != v1alpha1.NoRevision || f.have("r1") != 0 {
		t.Errorf("the status is %+v, and %d nodes have the revision", f.status, f.have("r1"))
	}
}

// TestRefused stops before any node has switched.
func TestRefused(t *testing.T) {
	f := newFleet(10)
	f.control()
	for i := range f.nodes {
		f.nodes[i].Report = &v1alpha1.PluginReport{Name: "50-p", Revision: v1alpha1.NoRevision,
			Next: &v1alpha1.Next{Revision: "r1", State: v1alpha1.NextRefused, Message: "it is no module"}}
	}
	f.control()
	if f.status.RolledBack != "r1" || f.status.Examples[0].Reason != "Refused" {
		t.Errorf("the status is %+v", f.status)
	}
}

// TestSilentAndAway takes nodes that are not ready out of the count, and those that say nothing as failing.
func TestSilentAndAway(t *testing.T) {
	f := newFleet(100)
	for i := range 20 {
		f.nodes[i].Ready = false
	}
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != "r1" || f.status.Nodes.Away != 20 || f.status.Nodes.Healthy != 80 {
		t.Errorf("with 20 nodes away the status is %+v", f.status)
	}

	f = newFleet(100)
	f.control()
	for i := range f.nodes {
		f.act(i, never)
	}
	f.control() // the canary is to switch, and never says so
	if u := f.status.Update; u == nil || len(u.Canaries) != 1 {
		t.Fatalf("there is no canary: %+v", f.status)
	}
	f.now = f.now.Add(plan.Silence - time.Second)
	f.control()
	if f.status.Update == nil {
		t.Error("a canary counts as silent too early")
	}
	f.now = f.now.Add(time.Second)
	f.control()
	if f.status.RolledBack != "r1" || f.status.Examples[0].Reason != "Silent" {
		t.Errorf("with a canary that says nothing the status is %+v", f.status)
	}
}

// lose has a node become NotReady.
func (f *fleet) lose(name string) {
	i := slices.IndexFunc(f.nodes, func(n plan.Node) bool { return n.Name == name })
	f.nodes[i].Ready, f.nodes[i].Changed = false, f.now
}

// to lets time pass until a step has begun and its nodes have switched.
func (f *fleet) to(t *testing.T, step string) {
	t.Helper()
	for end := f.now.Add(10 * time.Hour); f.status.Update == nil || f.status.Update.Step != step; f.now = f.now.Add(30 * time.Second) {
		if f.control(); f.now.After(end) {
			t.Fatalf("step %s does not come: %+v", step, f.status)
		}
		for i := range f.nodes {
			f.act(i, never)
		}
	}
}

// TestNotReadyInProbation counts as failing until the node is back, also in the steps that follow.
func TestNotReadyInProbation(t *testing.T) {
	f := newFleet(10)
	f.to(t, "Canary")
	f.lose(f.status.Update.Canaries[0])
	f.now = f.now.Add(time.Minute)
	f.control()
	if f.status.RolledBack != "r1" || f.status.Examples[0].Reason != "NotReady" {
		t.Errorf("the status is %+v", f.status)
	}

	f = newFleet(100)
	f.rollout.MaxFailing = intstr.FromInt32(1)
	f.to(t, "Canary")
	lost := f.status.Update.Canaries[0]
	f.lose(lost)
	for range 2 * 20 { // so many rounds have a probation
		f.now = f.now.Add(30 * time.Second)
		f.control()
	}
	if f.status.Update == nil || f.status.Nodes.Failing != 1 || f.status.Nodes.Away != 0 {
		t.Fatalf("with a canary that is lost the status is %+v", f.status)
	}
	i := slices.IndexFunc(f.nodes, func(n plan.Node) bool { return n.Name == lost })
	f.nodes[i].Ready, f.nodes[i].Changed = true, f.now
	f.to(t, "10%")
	if f.status.Nodes.Failing != 0 {
		t.Errorf("a node that is back fails: %+v", f.status)
	}
}

// TestNotReadyForAnotherReason is away: a node that has proved the update, or had not got it yet.
func TestNotReadyForAnotherReason(t *testing.T) {
	f := newFleet(100)
	f.to(t, "50%")
	proved := ""
	for _, n := range f.nodes {
		if n.Report.Revision == "r1" && n.Report.Phase == v1alpha1.Healthy {
			proved = n.Name
		}
	}
	f.lose(proved)
	for _, n := range f.nodes {
		if n.Report.Revision != "r1" {
			f.lose(n.Name)
			break
		}
	}
	for i, n := range f.nodes {
		if n.Report.Phase == v1alpha1.Probation { // its agent works, and kubelet did not before it switched
			f.nodes[i].Ready, f.nodes[i].Changed = false, n.Report.Since.Add(-time.Second)
			break
		}
	}
	f.control()
	if f.status.Update == nil || f.status.Nodes.Failing != 0 || f.status.Nodes.Away != 3 {
		t.Errorf("with three nodes that are not ready for other reasons the status is %+v", f.status)
	}
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != "r1" || f.status.Nodes.Away != 3 {
		t.Errorf("the rollout ends with %+v", f.status)
	}
}

// TestFewerSteps has a user shorten the steps of a rollout that is under way: the nodes that are left still get a probation.
func TestFewerSteps(t *testing.T) {
	f := newFleet(100)
	f.to(t, "10%")
	f.rollout.Steps = []int32{100}
	f.to(t, "100%")
	if u := f.status.Update; u == nil || f.may(f.nodes) != 100 || f.have("r1") != 100 {
		t.Errorf("%d nodes may have the update, and the status is %+v", f.may(f.nodes), f.status)
	}
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != "r1" || f.have("r1") != 100 {
		t.Errorf("the rollout ends with %+v", f.status)
	}
}

// TestHaltAndPause leave nodes as they are, and a paused rollout goes on later.
func TestHaltAndPause(t *testing.T) {
	f := newFleet(10)
	f.rollout.OnFailure = v1alpha1.Halt
	f.run(func(string, string) bool { return true }, time.Hour)
	if f.status.Update == nil || f.status.Update.Halted == "" || f.have("r1") != 1 {
		t.Errorf("%d nodes have a halted revision, and the status is %+v", f.have("r1"), f.status)
	}

	f = newFleet(10)
	f.rollout.Paused = true
	f.run(never, time.Hour)
	if f.status.Update == nil || f.have("r1") != 0 {
		t.Errorf("a paused rollout has gone on: %+v", f.status)
	}
	f.rollout.Paused = false
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != "r1" {
		t.Errorf("a rollout that was paused has not ended: %+v", f.status)
	}
}

// TestManualRollback goes back at once, without steps.
func TestManualRollback(t *testing.T) {
	f := newFleet(100)
	f.run(never, 10*time.Hour)
	f.desired = "r2"
	f.run(never, 40*time.Minute)
	if f.have("r2") == 0 {
		t.Fatal("no node has the update after forty minutes")
	}
	f.desired = "r1"
	f.run(never, time.Minute)
	if f.have("r1") != 100 || f.status.Update != nil {
		t.Errorf("%d of 100 nodes are back", f.have("r1"))
	}
}

// TestRemoval takes the plugin from nodes in the same steps.
func TestRemoval(t *testing.T) {
	f := newFleet(100)
	f.run(never, 10*time.Hour)
	f.desired = v1alpha1.NoRevision
	f.control()
	for f.status.Update != nil && f.now.Before(start.Add(20*time.Hour)) {
		if gone := 100 - f.have("r1"); gone > f.may(f.nodes) {
			t.Fatalf("%d nodes have removed the plugin at step %s", gone, f.status.Update.Step)
		}
		for i := range f.nodes {
			f.act(i, never)
		}
		f.now = f.now.Add(30 * time.Second)
		f.control()
	}
	if f.have("r1") != 0 || f.status.Stable.Revision != v1alpha1.NoRevision {
		t.Errorf("%d nodes still have the plugin; the status is %+v", f.have("r1"), f.status)
	}
}

// TestMaxRefused reaches the nodes that get the update, and no other one.
func TestMaxRefused(t *testing.T) {
	f := newFleet(10)
	f.rollout.MaxRefused = "5%"
	f.to(t, "Canary")
	for _, n := range f.nodes {
		most := plan.Choose(&f.status, n.Name).MaxRefused
		if canary := n.Name == f.status.Update.Canaries[0]; (most != nil) != canary || canary && *most != 5 {
			t.Errorf("%s: %v", n.Name, most)
		}
	}
}

// TestBakeChanges: a changed bakeSeconds holds for the step of the moment, and for the nodes that have the update.
func TestBakeChanges(t *testing.T) {
	f := newFleet(10)
	f.rollout.BakeSeconds = 3600
	f.to(t, "Canary")
	for _, seconds := range []int32{7200, 60} {
		f.rollout.BakeSeconds = seconds
		f.control()
		if length := plan.Choose(&f.status, f.status.Update.Canaries[0]).Probation; length != time.Duration(seconds)*time.Second {
			t.Errorf("with bakeSeconds %d a canary has a probation of %v", seconds, length)
		}
		for range 3 {
			for i := range f.nodes {
				f.act(i, never)
			}
			f.now = f.now.Add(30 * time.Second)
			f.control()
		}
		if step := f.status.Update.Step; (step == "Canary") != (seconds == 7200) {
			t.Errorf("with bakeSeconds %d the step is %s after 90 seconds", seconds, step)
		}
	}
}

// TestMadeAgain is an object that was deleted without its finalizer and made again: nodes keep what they have.
func TestMadeAgain(t *testing.T) {
	f := newFleet(10)
	f.run(never, 10*time.Hour)
	f.status = v1alpha1.NodePluginStatus{}
	f.desired = "r2"
	f.control()
	if f.status.Stable.Revision != "r1" {
		t.Errorf("nodes are to go from r1 to %s", f.status.Stable.Revision)
	}
}

// TestNoStatusNoChange is the first rule: absence is never an instruction.
func TestNoStatusNoChange(t *testing.T) {
	for _, s := range []v1alpha1.NodePluginStatus{
		{},
		{ObservedGeneration: 7, RolledBack: "r1"},
		{Update: &v1alpha1.Update{Revision: "r1"}},
	} {
		if c := plan.Choose(&s, "node-1"); c.Revision != "" {
			t.Errorf("with the status %+v a node is to have %s", s, c.Revision)
		}
	}
}

// TestRandomFleets holds in fleets whose nodes fail, leave and join, whose reports are lost, and whose users change their minds,
// that of the nodes that the controller has ranked never more have a revision than its step says, and none what was rolled back.
func TestRandomFleets(t *testing.T) {
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		f := newFleet(1 + r.IntN(60))
		f.rollout.MaxFailing = []intstr.IntOrString{intstr.FromString("2%"), intstr.FromInt32(0), intstr.FromInt32(3), intstr.FromString("30%")}[r.IntN(4)]
		if r.IntN(4) == 0 {
			f.rollout.OnFailure = v1alpha1.Halt
		}
		rate := []float64{0, 0.01, 0.1, 1}[r.IntN(4)]
		sick := map[string]bool{}
		bad := func(node, revision string) bool {
			key := node + revision
			if _, known := sick[key]; !known {
				sick[key] = r.Float64() < rate && revision != "r1"
			}
			return sick[key]
		}
		if message := wander(f, r, bad); message != "" {
			t.Fatalf("seed %d: %s; the status is %+v", seed, message, f.status)
		}
	}
}

// wander takes random steps, and says which rule was broken.
func wander(f *fleet, r *rand.Rand, bad func(node, revision string) bool) string {
	var ranked []plan.Node // as the controller knew them when the step began
	var began v1alpha1.Update
	var steps []int32 // as they were then
	for range 400 {
		f.now = f.now.Add(time.Duration(r.IntN(120)) * time.Second)
		switch r.IntN(40) {
		case 0:
			f.desired = []string{"r1", "r2", "r3", "r4", v1alpha1.NoRevision}[r.IntN(5)]
		case 1:
			f.join(fmt.Sprintf("late-%d", r.IntN(1e6)))
		case 2:
			n := &f.nodes[r.IntN(len(f.nodes))]
			n.Ready, n.Changed = !n.Ready, f.now
		case 3:
			f.rollout.Paused = !f.rollout.Paused
		case 4:
			if i := r.IntN(len(f.nodes)); len(f.nodes) > 1 {
				f.nodes = slices.Delete(slices.Clone(f.nodes), i, i+1)
			}
		case 6:
			f.rollout.Mode = []string{v1alpha1.Apply, v1alpha1.Shadow}[r.IntN(2)]
		case 5:
			f.rollout.Steps = [][]int32{{1, 10, 50, 100}, {100}, {5, 6, 7, 8, 9, 100}, {50, 50, 100}}[r.IntN(4)]
		}
		before := f.status
		if r.IntN(20) > 0 { // else the write is lost, or the controller was restarted
			f.control()
		}
		if u := f.status.Update; u != nil {
			if !sameUpdate(&began, u) || u.StepIndex != began.StepIndex || !u.StepSince.Equal(&began.StepSince) {
				ranked, began, steps = slices.Clone(f.nodes), *u, f.rollout.Steps
			}
			if message := stepHolds(f, ranked, steps, &before); message != "" {
				return message
			}
		}
		for i := range f.nodes {
			if r.IntN(4) > 0 { // else the agent is slow
				f.act(i, bad)
			}
		}
	}
	return ""
}

func stepHolds(f *fleet, ranked []plan.Node, steps []int32, before *v1alpha1.NodePluginStatus) string {
	u := f.status.Update
	most := len(u.Canaries)
	if u.StepIndex >= 2 {
		most = max(most, (int(steps[u.StepIndex-2])*len(ranked)+99)/100)
	}
	switch may := f.may(ranked); {
	case may > most:
		return fmt.Sprintf("%d of %d ranked nodes have %s at step %s", may, len(ranked), u.Revision, u.Step)
	case u.Mode == v1alpha1.Shadow && slices.ContainsFunc(ranked, func(n plan.Node) bool { return plan.Choose(&f.status, n.Name).Revision == u.Revision }):
		return fmt.Sprintf("a node is to have %s, which is a shadow", u.Revision)
	case u.StepIndex == 0 && may > 0:
		return fmt.Sprintf("%d nodes have %s before it was fetched", may, u.Revision)
	case before.RolledBack == u.Revision && f.desired == u.Revision:
		return fmt.Sprintf("%s is tried again after it was rolled back", u.Revision)
	case sameUpdate(before.Update, u) && u.Threshold < before.Update.Threshold:
		return fmt.Sprintf("nodes are to go back from %s, which goes on", u.Revision)
	}
	return ""
}

func sameUpdate(a, b *v1alpha1.Update) bool {
	return a != nil && a.Revision == b.Revision && a.Mode == b.Mode
}

// TestConditions are as kstatus reads them.
func TestConditions(t *testing.T) {
	f := newFleet(3)
	is := func(when, ready, reconciling, stalled string) {
		t.Helper()
		has := map[string]string{}
		for _, c := range f.status.Conditions {
			has[c.Type] = string(c.Status)
		}
		if has[v1alpha1.Ready] != ready || has[v1alpha1.Reconciling] != reconciling || has[v1alpha1.Stalled] != stalled {
			t.Errorf("%s: the conditions are %v", when, f.status.Conditions)
		}
	}
	f.control()
	is("in an update", "False", "True", "")
	since := f.status.Conditions[0].LastTransitionTime
	f.now = f.now.Add(time.Minute)
	f.control()
	if !f.status.Conditions[0].LastTransitionTime.Equal(&metav1.Time{Time: since.Time}) {
		t.Error("a condition that has not changed has another time")
	}
	f.run(never, 10*time.Hour)
	is("at the end", "True", "", "")
	f.desired = "r2"
	f.run(func(_, revision string) bool { return revision == "r2" }, 10*time.Hour)
	is("after a rollback", "False", "", "True")
}

// TestAwayInWords has the conditions say that nodes are away, and which ones keep a plugin from being removed.
func TestAwayInWords(t *testing.T) {
	f := newFleet(10)
	f.run(never, 10*time.Hour)
	message := func() string { return f.status.Conditions[0].Message }
	if m := message(); m != "nodes are to have r1" {
		t.Errorf("with all nodes there the message is %q", m)
	}
	for i := range 5 {
		f.lose(fmt.Sprintf("node-%d", i))
	}
	f.control()
	const away = "; nodes that are away, since they are not ready or bypass plugins, do not count: 5 of 10"
	if m := message(); m != "nodes are to have r1"+away {
		t.Errorf("with five away the message is %q", m)
	}
	f.desired = v1alpha1.NoRevision
	f.run(never, 10*time.Hour)
	f.control()
	const stays = "; the object stays until these have removed the plugin, or their Nodes are deleted: node-0, node-1, node-2, and 2 more"
	if m := message(); m != "nodes are to have none"+away+stays {
		t.Errorf("with five that have not removed the plugin the message is %q", m)
	}
	f.nodes = f.nodes[5:]
	f.control()
	if m := message(); m != "nodes are to have none" {
		t.Errorf("with all removed the message is %q", m)
	}
}

// TestFetchInWords: a rollout that waits for nodes that have not fetched the update says how many have.
func TestFetchInWords(t *testing.T) {
	f := newFleet(10)
	f.nodes[9].Bypassed = true
	for range 100 {
		f.control()
		f.now = f.now.Add(30 * time.Second)
		for i := range 7 { // two agents are dead
			f.act(i, never)
		}
	}
	if m := f.status.Conditions[0].Message; !strings.HasPrefix(m, "r1 is at step Fetch; 7 of 9 nodes have fetched it; nodes that are away") {
		t.Errorf("the message is %q", m)
	}
}

// TestNoCanaryInWords: a rollout that waits for a canary says so, if the selector leaves none.
func TestNoCanaryInWords(t *testing.T) {
	f := newFleet(10)
	f.rollout.Canary = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "cannary"}}
	f.run(never, time.Hour)
	const none = "; spec.rollout.canary selects no node that is ready and follows the fleet"
	if m := f.status.Conditions[0].Message; m != "r1 is at step Fetch; 10 of 10 nodes have fetched it"+none {
		t.Errorf("without a canary the message is %q", m)
	}
	f.nodes[3].Labels = f.rollout.Canary.MatchLabels
	f.to(t, "Canary")
	if m := f.status.Conditions[0].Message; m != "r1 is at step Canary" {
		t.Errorf("with a canary the message is %q", m)
	}
}

// TestServed says when pods may start on a new node.
func TestServed(t *testing.T) {
	stable := v1alpha1.NodePluginStatus{Stable: &v1alpha1.Stable{Revision: "r1"}}
	first := v1alpha1.NodePluginStatus{Stable: &v1alpha1.Stable{Revision: v1alpha1.NoRevision}, Update: &v1alpha1.Update{Revision: "r1"}}
	update := v1alpha1.NodePluginStatus{Stable: &v1alpha1.Stable{Revision: "r1"}, Update: &v1alpha1.Update{Revision: "r2", Canaries: []string{"n"}}}
	report := func(revision string, phase v1alpha1.Phase) *v1alpha1.PluginReport {
		return &v1alpha1.PluginReport{Revision: revision, Phase: phase}
	}
	for _, test := range []struct {
		name     string
		status   v1alpha1.NodePluginStatus
		bypassed bool
		report   *v1alpha1.PluginReport
		want     bool
	}{
		{"no status", v1alpha1.NodePluginStatus{}, false, nil, false},
		{"no report", stable, false, nil, false},
		{"stable", stable, false, report("r1", v1alpha1.Healthy), true},
		{"stable, and all plugins are bypassed", stable, true, report("r1", v1alpha1.Healthy), false},
		{"stable does not load", stable, false, report("r1", v1alpha1.Failing), false},
		{"stable is not loaded yet", stable, false, report("r1", v1alpha1.Waiting), false},
		{"stable was replaced by hand", stable, false, report("r1", v1alpha1.Edited), false},
		{"another revision", stable, false, report("r0", v1alpha1.Healthy), false},
		{"an update on probation", update, false, report("r2", v1alpha1.Probation), false},
		{"an update that failed", update, false, report("r2", v1alpha1.Failing), false},
		{"an update", update, false, report("r2", v1alpha1.Healthy), true},
		{"an update that it has not got yet", update, false, report("r1", v1alpha1.Healthy), false},
		{"nothing, before a first update reaches it", first, false, nil, true},
	} {
		if got := plan.Served(&test.status, plan.Node{Name: "n", Ready: true, Bypassed: test.bypassed, Report: test.report}); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// shadows is how many nodes call a revision as a shadow.
func (f *fleet) shadows(revision string) (n int) {
	for _, node := range f.nodes {
		if node.Report != nil && node.Report.Shadow != nil && node.Report.Shadow.Revision == revision {
			n++
		}
	}
	return n
}

// TestShadowFailsLate: a shadow is judged as long as it is there, also on nodes that were healthy and after the last step.
func TestShadowFailsLate(t *testing.T) {
	f := newFleet(10)
	f.run(never, 10*time.Hour)
	f.desired, f.rollout.Mode = "r2", v1alpha1.Shadow
	f.run(never, 10*time.Hour)
	if c := f.status.Conditions[0]; c.Reason != "Shadow" || f.shadows("r2") != 10 {
		t.Fatalf("%d nodes call the shadow, and the status is %+v", f.shadows("r2"), f.status)
	}
	f.run(func(node, revision string) bool { return node == "node-3" && revision == "r2" }, time.Hour)
	f.run(never, time.Minute)
	if f.status.RolledBack != "r2" || f.shadows("r2") != 0 {
		t.Errorf("%d nodes call a shadow that fails on one, and the status is %+v", f.shadows("r2"), f.status)
	}
}

// TestShadow has a revision come to the nodes in the same steps, and no node has it. It stays until mode changes.
func TestShadow(t *testing.T) {
	f := newFleet(100)
	f.rollout.Mode = v1alpha1.Shadow
	f.run(never, time.Hour)
	if ready := f.status.Conditions[0]; f.status.Update != nil || ready.Reason != "NothingToShadow" || ready.Status != metav1.ConditionFalse {
		t.Fatalf("without a stable revision the status is %+v", f.status)
	}
	f.rollout.Mode = v1alpha1.Apply
	f.run(never, 10*time.Hour)
	f.desired, f.rollout.Mode = "r2", v1alpha1.Shadow
	most := map[string]int{}
	for end := f.now.Add(10 * time.Hour); f.now.Before(end); f.now = f.now.Add(30 * time.Second) {
		f.control()
		for i := range f.nodes {
			f.act(i, never)
		}
		if f.have("r2") > 0 || f.status.Update == nil {
			t.Fatalf("%d nodes have a revision that is a shadow: %+v", f.have("r2"), f.status)
		}
		most[f.status.Update.Step] = f.shadows("r2")
	}
	if most["Fetch"] != 0 || most["Canary"] != 1 || most["10%"] != 10 || most["50%"] != 50 || most["100%"] != 100 {
		t.Errorf("nodes with the shadow, by step: %v", most)
	}
	if c := f.status.Conditions[0]; c.Reason != "Shadow" || c.Status != metav1.ConditionTrue || f.status.Stable.Revision != "r1" {
		t.Errorf("in the end the status is %+v", f.status)
	}

	f.rollout.Mode = v1alpha1.Apply // it begins with the first step
	f.control()
	if u := f.status.Update; u == nil || u.Step != "Fetch" || f.may(f.nodes) != 0 {
		t.Errorf("after the mode has changed the status is %+v", f.status)
	}
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != "r2" || f.have("r2") != 100 || f.shadows("r2") != 0 {
		t.Errorf("the rollout ends with %+v", f.status)
	}

	f.desired, f.rollout.Mode = "r3", v1alpha1.Shadow
	f.run(func(_, revision string) bool { return revision == "r3" }, 10*time.Hour)
	if f.status.RolledBack != "r3" || f.status.Examples[0].Reason != "Failing" {
		t.Errorf("with a shadow that fails the status is %+v", f.status)
	}
	f.run(never, time.Minute)
	if f.shadows("r3") != 0 || f.have("r2") != 100 {
		t.Errorf("%d nodes still call the shadow, and %d have the stable revision", f.shadows("r3"), f.have("r2"))
	}

	f.desired = v1alpha1.NoRevision
	f.run(never, 10*time.Hour)
	if f.status.Stable.Revision != v1alpha1.NoRevision {
		t.Errorf("a removal in the mode Shadow ends with %+v", f.status)
	}
}
