package enforce

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// ID is the ledger's name of a pod or container.
func (e *Enforcer) ID(o crifield.Object) ID {
	if o.Container == nil {
		return ID{Pod: UID(o.Pod.Config)}
	}
	pod, ok := e.Store.Pod(o.Container.PodID)
	if !ok {
		return ID{Pod: "sandbox " + o.Container.PodID, Container: o.Container.ID}
	}
	return ID{Pod: UID(pod.Config), Container: o.Container.ID}
}

// UID returns the UID of a pod, or another text that tells it apart, since not every client
// of CRI gives its pods one.
func UID(config *runtimeapi.PodSandboxConfig) string {
	if uid := config.GetMetadata().GetUid(); uid != "" {
		return uid
	}
	return SandboxName(config)
}

// pod returns the newest sandbox of a pod by the ledger's name of it; nil if the store has none.
func (e *Enforcer) pod(uid string) *crifield.Pod {
	p, ok := e.Store.FindPod(func(config *runtimeapi.PodSandboxConfig) bool { return UID(config) == uid })
	if !ok {
		return nil
	}
	return crifield.PodOf(p)
}

// SandboxName tells the sandboxes of a node apart before they have an ID.
func SandboxName(config *runtimeapi.PodSandboxConfig) string {
	m := config.GetMetadata()
	return fmt.Sprint(m.GetUid(), "/", m.GetNamespace(), "/", m.GetName(), "/", m.GetAttempt())
}

// Sandbox returns the ID of a container's sandbox, or of a pod's newest one; false if the store has none.
func (e *Enforcer) Sandbox(of ID) (id string, ok bool) {
	if of.Container != "" {
		c, known := e.Store.Container(of.Container)
		return c.PodID, known
	}
	if pod := e.pod(of.Pod); pod != nil {
		return pod.ID, true
	}
	return "", false
}

// objectOf names an object of the ledger for an event.
func (w work) objectOf(o crifield.Object) (a observe.Object) {
	pod := o.Pod
	if o.Container != nil {
		a.Container, a.ContainerID = o.Container.Config.GetMetadata().GetName(), o.Container.ID
		if p, ok := w.Store.Pod(o.Container.PodID); ok {
			pod = crifield.PodOf(p)
		}
	} else if a.ContainerID = w.id.Container; pod == nil {
		a.PodID = w.id.Pod
	}
	if pod != nil {
		meta := pod.Config.GetMetadata()
		a.Namespace, a.Pod, a.PodID = meta.GetNamespace(), meta.GetName(), pod.ID
	}
	return a
}

// Forget drops the ledger's record of a container that has been removed, and of a pod that the
// store lacks. The cgroup of a pod is that of all its sandboxes, also of those to come.
func (e *Enforcer) Forget(ctx context.Context, own crifield.Object) {
	id := e.ID(own)
	if own.Container != nil {
		e.Ledger.Record(id).Remove()
		e.Lift(ctx, id.Pod)
		return
	}
	switch {
	case e.Known(id): // it has another sandbox
	case own.Pod.Config.GetMetadata().GetUid() == "": // its next sandbox has another ID in the ledger
		e.Ledger.Record(id).Remove()
	default:
		e.Ledger.Record(id).Vacate(e.Known, e.hasGroup)
	}
}

// Known reports whether the store has an object of the ledger.
func (e *Enforcer) Known(id ID) bool {
	_, ok := e.Sandbox(id)
	return ok
}

// hasGroup reports whether a cgroup is there, or may be.
func (e *Enforcer) hasGroup(group string) bool { return e.Cgroups != nil && !e.Cgroups.Gone(group) }

// vacant reports whether a pod has lost its last sandbox and has no other one yet. The store alone
// knows of a sandbox that was made while no call was intercepted.
func (w work) vacant() bool {
	return w.record.Vacant() && !w.Known(w.id)
}

// dropGone drops the record of a pod without a sandbox if its cgroup is gone, and reports that.
func (w work) dropGone() bool {
	gone := w.vacant() && !w.hasGroup(w.record.Group())
	if gone {
		w.record.Remove()
	}
	return gone
}

// dropFailures has values of an object that has ended count as no failures: they are not to hold any more.
func (w work) dropFailures(ctx context.Context) {
	var failed []*Value
	var group string
	w.record.with(func(o *object) {
		group = o.group
		for _, v := range o.values {
			if v.fails() {
				failed = append(failed, v)
			}
		}
	})
	if len(failed) == 0 || !w.ended(ctx, group) {
		return
	}
	w.record.change(func(*object) bool {
		for _, v := range failed {
			v.Failed, v.Drift.Fight = nil, false
		}
		return true
	})
}

// ended reports whether the object with this cgroup, if that is known, has ended. The runtime is asked about a container whose cgroup
// is gone, since nobody tells the store of one that has ended by itself.
func (w work) ended(ctx context.Context, group string) bool {
	gone := group != "" && !w.hasGroup(group)
	if w.id.Container == "" {
		p := w.pod(w.id.Pod)
		return gone && p != nil && p.State == "notready"
	}
	c, _ := w.Store.Container(w.id.Container)
	return c.State == runtimeapi.ContainerState_CONTAINER_EXITED || gone && w.exited(ctx, Scan)
}

// Reuse drops the record of a pod whose cgroup is gone, before another sandbox of it is made.
func (e *Enforcer) Reuse(uid string) { e.of(ID{Pod: uid}).dropGone() }
