package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// setConditions says as kstatus reads it what becomes of the object.
func setConditions(s *v1alpha1.NodePluginStatus, in Input) {
	reason, message := "Complete", fmt.Sprintf("nodes are to have %s", s.Stable.Revision)
	ready, reconciling, stalled := true, false, false
	switch u := s.Update; {
	case s.RolledBack != "":
		ready, stalled, reason = false, true, "RolledBack"
		message = fmt.Sprintf("too many nodes failed with %s, so all go back to %s: see status.examples, and change spec", s.RolledBack, s.Stable.Revision)
	case u == nil && in.Desired != s.Stable.Revision:
		ready, stalled, reason = false, true, "NothingToShadow"
		message = "spec.rollout.mode is Shadow, and there is no stable revision beside which the new one could be called: set mode to Apply first"
	case u == nil:
	case u.Halted != "":
		ready, stalled, reason = false, true, "Halted"
		message = fmt.Sprintf("%s: see status.examples, and change spec", u.Halted)
	case in.Rollout.Paused:
		ready, reconciling, reason = false, true, "Paused"
		message = fmt.Sprintf("%s stays at step %s until spec.rollout.paused is false", u.Revision, u.Step)
	case u.Mode == v1alpha1.Shadow && u.Threshold == ranks:
		reason, message = "Shadow", fmt.Sprintf("%s is called beside %s, until spec.rollout.mode or the revision changes", u.Revision, s.Stable.Revision)
	default:
		ready, reconciling, reason, message = false, true, "Updating", fmt.Sprintf("%s is at step %s", u.Revision, u.Step)
	}
	for _, c := range []struct {
		kind string
		is   bool
	}{{v1alpha1.Ready, ready}, {v1alpha1.Reconciling, reconciling}, {v1alpha1.Stalled, stalled}} {
		status := metav1.ConditionFalse
		if c.is {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: c.kind, Status: status, Reason: reason, Message: message,
			ObservedGeneration: in.Generation, LastTransitionTime: metav1.NewTime(in.Now),
		})
	}
}
