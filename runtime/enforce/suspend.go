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

// Around calls send, which sends the update r of a container's resources to the runtime. Values for which the kernel would
// refuse it are cleared meanwhile, and come back whatever happens; what an accepted update has overwritten is written
// again. cause is the call that the update is; "" is one of the proxy's own, which is no reason for the next one.
func (e *Enforcer) Around(
	ctx context.Context, obj observe.Object, c *crifield.Container, r *runtimeapi.UpdateContainerResourcesRequest, cause string,
	send func() error,
) error {
	own := crifield.Object{Container: c}
	var hold *cgroup.Suspension
	if e.Cgroups != nil {
		group, err := e.Group(ctx, own)
		started := err == nil || e.Started(c.ID) // else it has nothing that was written
		if err == nil {
			update := cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()}
			hold, err = e.Cgroups.SuspendForUpdate(ctx, group, update)
		}
		if err != nil && started {
			e.Observer.Observe(ctx, &observe.SuspendFailed{Object: obj, Err: err})
		}
	}
	accepted := false
	defer func() { // send may panic
		record := e.Ledger.Record(e.ID(own))
		if accepted && hold != nil { // while the group is not idle
			_, weight := r.GetLinux().GetUnified()["cpu.weight"]
			g := groupFiles{Group: e.Cgroups.Group(record.Group())}
			record.Reread(rules.CPUIdle, weight || r.GetLinux().GetCpuShares() != 0, g)
			g.Close()
		}
		if err := hold.Restore(ctx, accepted); err != nil {
			e.Observer.Observe(ctx, &observe.RestoreFailed{Object: obj, Err: err})
			record.Note("UpdateContainerResources") // the next scan looks at it
		}
		if accepted {
			if cause != "" {
				record.Note(cause)
			}
			e.Write(ctx, own)
		}
	}()
	err := send()
	accepted = err == nil
	return err
}

// keepFile is for an update r of the host's own, which names only what it changes, and with which a runtime may overwrite
// a file. restore brings back what it held, unless a plugin wants the file: then that is written anyway.
func (w work) keepFile(
	ctx context.Context, c *crifield.Container, r *runtimeapi.LinuxContainerResources, file string,
) (restore func()) {
	own := crifield.Object{Container: c}
	_, named := r.GetUnified()[file]
	if w.Cgroups == nil || named || slices.Contains(w.record.Files(), file) {
		return func() {}
	}
	group, err := w.Group(ctx, own)
	if err != nil {
		return func() {}
	}
	before, err := w.Cgroups.Read(group, file)
	return func() {
		if now, lost := w.Cgroups.Read(group, file); err != nil || lost != nil || now == before {
			return // there is no such file, or the container has ended
		}
		if err := w.Cgroups.Write(ctx, group, file, before); err != nil {
			w.Observer.Observe(ctx, &observe.RestoreFailed{Object: w.objectOf(own), Err: err})
		}
	}
}
