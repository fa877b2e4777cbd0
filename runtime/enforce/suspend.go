package enforce

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// updateRequest asks the runtime for other resources of a container.
type updateRequest = runtimeapi.UpdateContainerResourcesRequest

// Around calls send, which sends the update r of a container's resources to the runtime. Values for which the kernel would
// refuse it are cleared meanwhile, and come back whatever happens; what an accepted update has overwritten is written
// again. cause is the call that the update is; "" is one of the proxy's own, which is no reason for the next one.
func (e *Enforcer) Around(
	ctx context.Context, obj observe.Object, c *crifield.Container, r *updateRequest, cause string, send func() error,
) error {
	hold := e.suspend(ctx, obj, c, r)
	accepted := false
	defer func() { e.restore(ctx, obj, c, hold, r, cause, accepted) }() // send may panic
	err := send()
	accepted = err == nil
	return err
}

// suspend clears cgroup values of a container that would make the kernel refuse an update. It
// returns nil if there are none.
func (e *Enforcer) suspend(ctx context.Context, obj observe.Object, c *crifield.Container, r *updateRequest) *cgroup.Suspension {
	if e.Cgroups == nil {
		return nil
	}
	group, err := e.Group(ctx, crifield.Object{Container: c})
	if err != nil && !e.Started(c.ID) { // it has nothing that was written
		return nil
	}
	var hold *cgroup.Suspension
	if err == nil {
		update := cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()}
		hold, err = e.Cgroups.SuspendForUpdate(ctx, group, update)
	}
	if err != nil {
		e.Observer.Observe(ctx, &observe.SuspendFailed{Object: obj, Err: err})
	}
	return hold
}

// restore writes back what suspend cleared, and repairs what the update r has overwritten.
func (e *Enforcer) restore(
	ctx context.Context, obj observe.Object, c *crifield.Container, hold *cgroup.Suspension,
	r *updateRequest, cause string, accepted bool,
) {
	own := crifield.Object{Container: c}
	if accepted && hold != nil { // while the group is not idle
		id := e.ID(own)
		_, weight := r.GetLinux().GetUnified()["cpu.weight"]
		named := weight || r.GetLinux().GetCpuShares() != 0
		g := groupFiles{Group: e.Cgroups.Group(e.Ledger.Record(id).Group())}
		e.Ledger.Record(id).Reread(rules.CPUIdle, named, g)
		g.Close()
	}
	if err := hold.Restore(ctx, accepted); err != nil {
		e.Observer.Observe(ctx, &observe.RestoreFailed{Object: obj, Err: err})
		e.Ledger.Record(e.ID(own)).Note("UpdateContainerResources") // the next scan looks at it
	}
	if accepted {
		if cause != "" {
			e.Ledger.Record(e.ID(own)).Note(cause)
		}
		e.Write(ctx, own)
	}
}

// keepFile is for an update r of the host's own, which names only what it changes, and with which a runtime may overwrite
// a file. restore brings back what it held, unless a plugin wants the file: then that is written anyway.
func (e *Enforcer) keepFile(
	ctx context.Context, c *crifield.Container, r *runtimeapi.LinuxContainerResources, file string,
) (restore func()) {
	own := crifield.Object{Container: c}
	_, named := r.GetUnified()[file]
	if e.Cgroups == nil || named || slices.Contains(e.Ledger.Record(e.ID(own)).Files(), file) {
		return func() {}
	}
	group, err := e.Group(ctx, own)
	if err != nil {
		return func() {}
	}
	before, err := e.Cgroups.Read(group, file)
	return func() {
		if now, lost := e.Cgroups.Read(group, file); err != nil || lost != nil || now == before {
			return // there is no such file, or the container has ended
		}
		if err := e.Cgroups.Write(ctx, group, file, before); err != nil {
			e.Observer.Observe(ctx, &observe.RestoreFailed{Object: e.of(e.ID(own)).objectOf(own), Err: err})
		}
	}
}
