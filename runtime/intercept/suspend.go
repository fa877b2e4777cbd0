package intercept

import (
	"context"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// suspend clears cgroup values of a container that would make the kernel refuse an update. It
// returns nil if there are none.
func (i *interceptor) suspend(ctx context.Context, e *event, c *crifield.Container, r *runtimeapi.UpdateContainerResourcesRequest) *cgroup.Suspension {
	if i.Cgroups == nil {
		return nil
	}
	group, err := i.group(ctx, crifield.Object{Container: c})
	if err != nil && !i.started(c.ID) { // it has nothing that was written
		return nil
	}
	var hold *cgroup.Suspension
	if err == nil {
		hold, err = i.Cgroups.SuspendForUpdate(ctx, group, cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()})
	}
	if err != nil {
		i.Observer.Observe(ctx, &observe.SuspendFailed{Object: e.aboutContainer(c), Err: err})
	}
	return hold
}

// restore writes back what suspend cleared, and repairs what the update r has overwritten.
func (i *interceptor) restore(ctx context.Context, e *event, c *crifield.Container, hold *cgroup.Suspension, r *runtimeapi.UpdateContainerResourcesRequest, accepted bool) {
	own := crifield.Object{Container: c}
	if accepted && hold != nil { // while the group is not idle
		id := i.idOf(own)
		_, weight := r.GetLinux().GetUnified()["cpu.weight"]
		named := weight || r.GetLinux().GetCpuShares() != 0
		g := groupFiles{Group: i.Cgroups.Group(i.Ledger.Group(id))}
		i.Ledger.Reread(id, rules.CPUIdle, named, g)
		g.Close()
	}
	if err := hold.Restore(ctx, accepted); err != nil {
		i.Observer.Observe(ctx, &observe.RestoreFailed{Object: e.aboutContainer(c), Err: err})
		i.Ledger.Note(i.idOf(own), "UpdateContainerResources") // the next scan looks at it
	}
	if accepted {
		if e != nil { // the host's own resets are not the reason for the next one
			i.Ledger.Note(i.idOf(own), "UpdateContainerResources")
		}
		i.carry(ctx, own, ledger.Expected)
	}
}

// keepOOMGroup is for an update r of the host's own, which names only what it changes. runc has systemd
// set properties of the container's unit then, for which systemd writes 0 to memory.oom.group.
// containerd names it again, and CRI-O does not. restore brings back what it held, unless a plugin
// wants the file: then that is written anyway.
func (i *interceptor) keepOOMGroup(ctx context.Context, c *crifield.Container, r *runtimeapi.LinuxContainerResources) (restore func()) {
	const file = "memory.oom.group"
	own := crifield.Object{Container: c}
	_, named := r.GetUnified()[file]
	if i.Cgroups == nil || named || slices.Contains(i.Ledger.Files(i.idOf(own)), file) {
		return func() {}
	}
	group, err := i.group(ctx, own)
	if err != nil {
		return func() {}
	}
	before, err := i.Cgroups.Read(group, file)
	return func() {
		if now, lost := i.Cgroups.Read(group, file); err != nil || lost != nil || now == before {
			return // there is no such file, or the container has ended
		}
		if err := i.Cgroups.Write(ctx, group, file, before); err != nil {
			i.Observer.Observe(ctx, &observe.RestoreFailed{Object: i.about(i.idOf(own), own), Err: err})
		}
	}
}
