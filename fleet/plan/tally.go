package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// tally is how many nodes are where.
type tally struct {
	v1alpha1.Nodes
	reached           int // whose turn it is
	expected          int // of these, or in the first step of all, those that are to say how they are
	healthyOfExpected int
	judged            int // of which Failing and Silent are a share
	examples          []v1alpha1.Example
}

// stops reports whether too many nodes fail.
func (t *tally) stops(most intstr.IntOrString) bool {
	bad := int(t.Failing + t.Silent)
	return bad > 0 && bad > allowed(most, t.judged)
}

// count looks at each node, for the update if there is one, and else for the stable revision.
func count(s *v1alpha1.NodePluginStatus, nodes []Node, now time.Time) (t tally) {
	t.Selected = int32(len(nodes))
	for _, n := range nodes {
		if u := s.Update; u != nil {
			t.add(n, u, now)
			continue
		}
		t.addSettled(n, s.Stable.Revision)
	}
	return t
}

// has is the revision that a node has; NoRevision if it has none.
func has(r *v1alpha1.PluginReport) string {
	if r == nil || r.Revision == "" {
		return v1alpha1.NoRevision
	}
	return r.Revision
}

// apart reports whether somebody has taken the plugin into his own hands on a node.
func apart(r *v1alpha1.PluginReport) bool {
	return r != nil && (r.Phase == v1alpha1.Edited || r.Phase == v1alpha1.Blocked)
}

// healthy reports whether a node has proved what it has. A node that has removed the plugin reports nothing of it.
func healthy(r *v1alpha1.PluginReport) bool {
	return r == nil || r.Phase == v1alpha1.Healthy || r.Phase == v1alpha1.Disabled
}

// proof is how far an update is on a node.
type proof struct {
	switched, healthy, failing bool
	message                    string // why it is failing
}

func prove(r *v1alpha1.PluginReport, u *v1alpha1.Update) proof {
	switch {
	case u.Mode != v1alpha1.Shadow:
		p := proof{switched: has(r) == u.Revision, healthy: healthy(r)}
		if r != nil {
			p.failing, p.message = r.Phase == v1alpha1.Failing, r.Message
		}
		return p
	case r == nil || r.Shadow == nil || r.Shadow.Revision != u.Revision:
		return proof{}
	}
	return proof{true, r.Shadow.Phase == v1alpha1.Healthy, r.Shadow.Phase == v1alpha1.Failing, r.Shadow.Message}
}

// add counts a node during an update.
func (t *tally) add(n Node, u *v1alpha1.Update, now time.Time) {
	turn, is := reached(u, n.Name), prove(n.Report, u)
	if turn {
		t.reached++
	}
	switch {
	case n.Bypassed, !n.Ready && !n.fell(u, turn):
		t.Away++
		return
	case apart(n.Report):
		t.Apart++
		return
	}
	counts := turn || u.StepIndex == stepFetch
	if counts {
		t.expected++
	}
	next := n.next(u.Revision)
	refused := counts && next == v1alpha1.NextRefused
	if is.switched || next == v1alpha1.NextFetched {
		t.Fetched++
	}
	if is.switched {
		t.Updated++
	}
	fetched := next == v1alpha1.NextFetched && u.StepIndex == stepFetch
	if is.switched || fetched || refused {
		t.judged++
	}
	switch {
	case refused:
		t.fail(n, "Refused", n.Report.Next.Message)
	case is.switched && is.failing:
		t.fail(n, "Failing", is.message)
	case !n.Ready:
		t.fail(n, "NotReady", "the node became NotReady before it had proved the update")
	case is.switched && is.healthy:
		t.Healthy++
		if turn {
			t.healthyOfExpected++
		}
	case turn && !is.switched && min(now.Sub(u.StepSince.Time), now.Sub(n.Changed), now.Sub(n.Joined)) >= Silence:
		t.Silent++
		t.judged++
		if u.Revision == v1alpha1.NoRevision { // the object waits for the node, and no step does
			t.expected--
		}
		t.example(n, "Silent", "the node is ready, was to switch, and has not said that it has")
	}
}

// addSettled counts a node when there is no update.
func (t *tally) addSettled(n Node, revision string) {
	switch {
	case n.Bypassed, !n.Ready:
		t.Away++
		return
	case apart(n.Report):
		t.Apart++
		return
	case has(n.Report) != revision:
		return
	}
	t.Fetched++
	t.Updated++
	switch {
	case healthy(n.Report):
		t.Healthy++
	case n.Report.Phase == v1alpha1.Failing:
		t.fail(n, "Failing", n.Report.Message)
	}
}

// fell reports whether a node that is not ready became so while it had yet to prove an update: it counts for that until it is back.
// It may not have had the time to say that it has switched. One that is not ready for another reason is away.
func (n *Node) fell(u *v1alpha1.Update, turn bool) bool {
	switch {
	case u.Mode == v1alpha1.Shadow: // nothing is applied
		return false
	case has(n.Report) != u.Revision:
		return turn && !n.Changed.Before(u.StepSince.Time)
	}
	return !healthy(n.Report) && !n.Changed.Before(n.Report.Since.Time)
}

// next is how far the update is on a node that does not have it yet. A removal needs nothing to be fetched.
func (n *Node) next(revision string) v1alpha1.NextState {
	switch {
	case revision == v1alpha1.NoRevision:
		return v1alpha1.NextFetched
	case n.Report == nil || n.Report.Next == nil || n.Report.Next.Revision != revision:
		return ""
	}
	return n.Report.Next.State
}

func (t *tally) fail(n Node, reason, message string) {
	t.Failing++
	t.example(n, reason, message)
}

const maxExamples = 10

func (t *tally) example(n Node, reason, message string) {
	if len(t.examples) < maxExamples {
		t.examples = append(t.examples, v1alpha1.Example{Node: n.Name, Reason: reason, Message: message})
	}
}
