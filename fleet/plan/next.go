package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// Silence is how long a node that is ready may take to switch, and to learn that it is to have the plugin.
const Silence = 5 * time.Minute

// maxCanaries bounds the list that all nodes read.
const maxCanaries = 100

// The steps before those of spec.rollout.steps.
const (
	stepFetch  = 0
	stepCanary = 1
	firstStep  = 2
)

// Node is a node that is to have the plugin.
type Node struct {
	Name     string
	Labels   map[string]string
	Ready    bool
	Changed  time.Time              // when Ready changed last
	Joined   time.Time              // when it became one that is to have the plugin; zero: long ago
	Bypassed bool                   // it has taken all plugins out of the way
	Report   *v1alpha1.PluginReport // nil: it has not got the plugin, or has not said so
}

// Input is what a decision is made of.
type Input struct {
	Now        time.Time
	Generation int64
	Rollout    v1alpha1.Rollout
	Desired    string // revision of spec; v1alpha1.NoRevision: the plugin is to be removed
	Status     v1alpha1.NodePluginStatus
	Nodes      []Node // all that the plugin's selector selects; in any order
	Wrong      error  // says why these are not known: the API server has let in a selector that is none
}

// Next returns the status that follows. It goes on by a step at the most.
func Next(in Input) v1alpha1.NodePluginStatus {
	s := in.Status.DeepCopy()
	s.ObservedGeneration = in.Generation
	if in.Wrong != nil {
		setConditions(s, in)
		return *s
	}
	nodes := slices.SortedFunc(slices.Values(in.Nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	if s.Stable == nil {
		s.Stable = &v1alpha1.Stable{Revision: common(nodes)}
	}
	follow(s, in)
	t := count(s, nodes, in.Now)
	if u := s.Update; u != nil && u.Halted == "" {
		if u.Revision != v1alpha1.NoRevision && t.stops(in.Rollout.MaxFailing) { // a removal waits for nodes: nothing could follow it
			stop(s, in.Rollout, t)
		} else if !in.Rollout.Paused {
			advance(s, in, nodes, t)
		}
		if s.Update == nil { // what nodes are to have is another revision now
			t = count(s, nodes, in.Now)
		}
	}
	s.Nodes = t.Nodes
	if s.Update != nil || s.RolledBack == "" { // nodes that go back have no more examples, and somebody wants to know why
		s.Examples = t.examples
	}
	setConditions(s, in)
	return *s
}

// common is the revision that more than half of the nodes have. An object that was deleted and made again takes nothing from these,
// and what a few have goes to no others.
func common(nodes []Node) string {
	times := map[string]int{}
	for _, n := range nodes {
		r := has(n.Report)
		if times[r]++; 2*times[r] > len(nodes) {
			return r
		}
	}
	return v1alpha1.NoRevision
}

// follow makes the update that of the desired revision.
func follow(s *v1alpha1.NodePluginStatus, in Input) {
	if s.RolledBack != in.Desired {
		s.RolledBack = ""
	}
	switch mode := modeOf(in); {
	case in.Desired == s.Stable.Revision, in.Desired == s.RolledBack: // the first is a rollback by hand, which has no steps
		s.Update = nil
	case mode == v1alpha1.Shadow && s.Stable.Revision == v1alpha1.NoRevision: // there is nothing beside which it could be called
		s.Update = nil
	case s.Update == nil || s.Update.Revision != in.Desired || s.Update.Mode != mode:
		step := stepName(in.Rollout, stepFetch)
		s.Update = &v1alpha1.Update{Revision: in.Desired, Mode: mode, Step: step, StepSince: metav1.NewTime(in.Now)}
	}
	if u := s.Update; u != nil {
		u.BakeSeconds, u.MaxRefused = in.Rollout.BakeSeconds, in.Rollout.MaxRefused
	}
}

// modeOf is how nodes get the desired revision. A removal has no shadow.
func modeOf(in Input) string {
	if in.Rollout.Mode == v1alpha1.Shadow && in.Desired != v1alpha1.NoRevision {
		return v1alpha1.Shadow
	}
	return v1alpha1.Apply
}

func stop(s *v1alpha1.NodePluginStatus, r v1alpha1.Rollout, t tally) {
	if r.OnFailure == v1alpha1.Halt {
		s.Update.Halted = fmt.Sprintf("%d of %d nodes failed and %d were silent at step %s", t.Failing, t.judged, t.Silent, s.Update.Step)
		return
	}
	s.Examples = t.examples
	s.RolledBack, s.Update = s.Update.Revision, nil
}

// advance goes on to the next step if this one is over.
func advance(s *v1alpha1.NodePluginStatus, in Input, nodes []Node, t tally) {
	u := s.Update
	all, end := u.Threshold == ranks, firstStep-1+int32(len(in.Rollout.Steps))
	switch baked := in.Now.Sub(u.StepSince.Time) >= time.Duration(u.BakeSeconds)*time.Second; {
	case u.StepIndex == stepFetch:
		if t.expected > 0 && enough(int(t.Fetched), t.expected) {
			begin(u, in, nodes, stepCanary)
		}
	case t.reached == 0, t.expected == 0 && u.StepIndex == stepCanary: // all are gone or away, or silent in a removal
		begin(u, in, nodes, stepCanary)
	case t.healthyOfExpected == 0 && t.Silent == 0, !baked, !enough(t.healthyOfExpected, t.expected): // no removal expects a silent node
	case all && u.Mode == v1alpha1.Shadow: // until mode or revision changes
	case all:
		s.Stable, s.Update = &v1alpha1.Stable{Revision: u.Revision}, nil
	default:
		step := u.StepIndex + 1
		if step > end || stepName(in.Rollout, u.StepIndex) != u.Step { // spec has other steps than it had
			step = firstStep
		}
		for step < end && share(in.Rollout.Steps[step-firstStep], len(nodes)) <= t.reached {
			step++ // it would add no node
		}
		begin(u, in, nodes, step)
	}
}

// enough reports whether 95 % of the expected nodes are there.
func enough(are, expected int) bool { return are >= expected-expected/20 }

// share is how many of all nodes a percent is, rounded up.
func share(percent int32, all int) int { return (int(percent)*all + 99) / 100 }

// begin begins a step: it says which nodes have the update from now on.
func begin(u *v1alpha1.Update, in Input, nodes []Node, step int32) {
	if step == stepCanary {
		canaries := pick(u, in.Rollout.Canary, nodes)
		if len(canaries) == 0 {
			return
		}
		u.Canaries = canaries
	} else {
		u.Threshold = threshold(u, nodes, share(in.Rollout.Steps[step-firstStep], len(nodes)))
	}
	u.StepIndex, u.StepSince, u.Step = step, metav1.NewTime(in.Now), stepName(in.Rollout, step)
}

// there reports whether a node does what the fleet says.
func (n *Node) there() bool { return n.Ready && !n.Bypassed && !apart(n.Report) }

// pick chooses other canaries than there are, among the nodes that are there: all that the selector selects, or the first one. Those that
// have fetched the revision come first.
func pick(u *v1alpha1.Update, selector *metav1.LabelSelector, nodes []Node) (names []string) {
	waits := map[string]int{}
	for _, n := range nodes {
		if !n.there() || slices.Contains(u.Canaries, n.Name) {
			continue
		}
		if selects, err := Selects(selector, n.Labels); err != nil || !selects {
			continue
		}
		names = append(names, n.Name)
		if n.next(u.Revision) != v1alpha1.NextFetched {
			waits[n.Name] = 1
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(waits[a], waits[b]), cmp.Compare(rank(u.Revision, a), rank(u.Revision, b)))
	})
	most := maxCanaries
	if selector == nil {
		most = 1
	}
	return names[:min(most, len(names))]
}

// threshold is above the ranks of so many nodes that these and the canaries are count nodes; of nodes with one rank
// either all are below it or none.
func threshold(u *v1alpha1.Update, nodes []Node, count int) int64 {
	var others []int64
	for _, n := range nodes {
		if !slices.Contains(u.Canaries, n.Name) {
			others = append(others, rank(u.Revision, n.Name))
		}
	}
	slices.Sort(others)
	count -= len(nodes) - len(others)
	switch {
	case count >= len(others):
		return ranks
	case count <= 0:
		return 0
	}
	return others[count]
}

func stepName(r v1alpha1.Rollout, step int32) string {
	switch {
	case step == stepFetch:
		return "Fetch"
	case step == stepCanary:
		return "Canary"
	}
	return fmt.Sprintf("%d%%", r.Steps[step-firstStep])
}

// allowed is how many of all nodes may fail: a percent is rounded down.
func allowed(most intstr.IntOrString, all int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&most, all, false)
	if err != nil { // the API server should not have let it in
		return 0
	}
	return n
}
