package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// setConditions says as kstatus reads it what becomes of the object. Reconciling and Stalled are there only while they are true, as
// kstatus asks; each node gets the object at each change.
func setConditions(s *v1alpha1.NodePluginStatus, in Input) {
	reason, message := "Complete", ""
	abnormal := "" // Reconciling or Stalled
	switch u := s.Update; {
	case in.Wrong != nil:
		abnormal, reason, message = v1alpha1.Stalled, "InvalidSelector", in.Wrong.Error()
	case s.RolledBack != "":
		abnormal, reason = v1alpha1.Stalled, "RolledBack"
		message = fmt.Sprintf("too many nodes failed with %s, so all go back to %s: see status.examples, and change spec", s.RolledBack, s.Stable.Revision)
	case u == nil && in.Desired != s.Stable.Revision:
		abnormal, reason = v1alpha1.Stalled, "NothingToShadow"
		message = "spec.rollout.mode is Shadow, and there is no stable revision beside which the new one could be called: set mode to Apply first"
	case u == nil:
		message = fmt.Sprintf("nodes are to have %s", s.Stable.Revision)
	case u.Halted != "":
		abnormal, reason = v1alpha1.Stalled, "Halted"
		message = fmt.Sprintf("%s: see status.examples, and change spec", u.Halted)
	case in.Rollout.Paused:
		abnormal, reason = v1alpha1.Reconciling, "Paused"
		message = fmt.Sprintf("%s stays at step %s until spec.rollout.paused is false", u.Revision, u.Step)
	case u.Mode == v1alpha1.Shadow && u.Threshold == ranks:
		reason, message = "Shadow", fmt.Sprintf("%s is called beside %s, until spec.rollout.mode or the revision changes", u.Revision, s.Stable.Revision)
	default:
		abnormal, reason, message = v1alpha1.Reconciling, "Updating", fmt.Sprintf("%s is at step %s", u.Revision, u.Step)
		if n := s.Nodes; u.StepIndex == stepFetch && u.Revision != v1alpha1.NoRevision {
			message += fmt.Sprintf("; %d of %d nodes have fetched it", n.Fetched, n.Selected-n.Away-n.Apart)
		}
		turn := slices.ContainsFunc(in.Nodes, func(n Node) bool { return reached(u, n.Name) })
		if c := in.Rollout.Canary; c != nil && !turn && len(pick(u, c, in.Nodes)) == 0 {
			message += "; spec.rollout.canary selects no node that is ready and follows the fleet"
		}
	}
	message += absent(s, in)
	set := func(kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: in.Generation, LastTransitionTime: metav1.NewTime(in.Now),
		})
	}
	if abnormal == "" {
		set(v1alpha1.Ready, metav1.ConditionTrue)
	} else {
		set(v1alpha1.Ready, metav1.ConditionFalse)
	}
	for _, kind := range []string{v1alpha1.Reconciling, v1alpha1.Stalled} {
		if kind == abnormal {
			set(kind, metav1.ConditionTrue)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
}

// maxNames is how many nodes a message names.
const maxNames = 3

// absent says which nodes do not take part, and which ones a removal waits for when it has no more steps; "" if there are none.
func absent(s *v1alpha1.NodePluginStatus, in Input) (text string) {
	if s.Nodes.Away > 0 {
		text = fmt.Sprintf("; nodes that are away, since they are not ready or bypass plugins, do not count: %d of %d", s.Nodes.Away, s.Nodes.Selected)
	}
	if in.Desired != v1alpha1.NoRevision || s.Update != nil {
		return text
	}
	var names []string
	for _, n := range in.Nodes {
		if n.Report != nil {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return text
	}
	slices.Sort(names)
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames], fmt.Sprintf("and %d more", more))
	}
	return text + "; the object stays until these have removed the plugin, or their Nodes are deleted: " + strings.Join(names, ", ")
}
