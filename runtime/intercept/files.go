package intercept

import (
	"context"
	"errors"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// applyFiles writes the cgroup files among the changes of one object of an event. The store
// keeps those of a container, and StartContainer writes them again. The
// error is a *plugin.Error, for a pod that is about to run: kubelet has made its cgroup, and
// a plugin with policy Fail refuses the pod if a file of it cannot be written.
func (i *interceptor) applyFiles(ctx context.Context, e *event, of abi.Object, changes []plugin.Owned) error {
	return i.writeFiles(ctx, e, of, i.keepFiles(e, of, changes))
}

// keepFiles returns the changes of cgroup files of an object. Those of a container are added
// to the values that the store keeps for it.
func (i *interceptor) keepFiles(e *event, of abi.Object, changes []plugin.Owned) (files []plugin.Owned) {
	for _, o := range changes {
		if o.Change.Op == plugin.WriteFile && o.Change.Object == of {
			files = append(files, o)
		}
	}
	if c := e.object(of).Container; c != nil && len(files) > 0 {
		kept := make(map[string]pods.CgroupFile, len(files))
		for _, o := range files {
			kept[o.Change.Key] = pods.CgroupFile{Plugin: o.Plugin, Value: o.Change.Text}
		}
		i.Store.AddCgroupFiles(c.ID, kept)
	}
	return files
}

// keptFiles returns the changes that the store keeps for the event's own container.
func (i *interceptor) keptFiles(e *event) (files []plugin.Owned) {
	record, _ := i.Store.Container(e.container.ID)
	for name, f := range record.CgroupFiles {
		files = append(files, plugin.Owned{Plugin: f.Plugin, Change: plugin.Change{Op: plugin.WriteFile, Object: abi.Container, Key: name, Text: f.Value}})
	}
	return files
}

// writeFiles is the one place that writes values of plugins to cgroup files. The files are
// independent of each other.
func (i *interceptor) writeFiles(ctx context.Context, e *event, of abi.Object, files []plugin.Owned) error {
	target := e.object(of)
	waits := of >= abi.FirstHandle || e.hook == abi.PostCreateContainer // for StartContainer
	if len(files) == 0 || waits && target.Container != nil && !i.started(target.Container.ID) {
		return nil
	}
	group, noGroup := i.group(ctx, target)
	for _, o := range files {
		err := noGroup
		if err == nil {
			err = i.Cgroups.Write(group, o.Change.Key, o.Change.Text)
		}
		if err != nil && of == abi.Pod && o.Policy == plugin.Fail && e.hook.Info().Phase == abi.Before {
			return &plugin.Error{Plugin: o.Plugin, Hook: e.hook, Err: err}
		}
		i.fileWritten(ctx, e, o, err)
	}
	return nil
}

// started reports whether the container has left the state in which it has no
// cgroup yet. A caller has the store keep its files before it asks, and StartContainer reads
// them after the store has its new state: so one of the two writes them.
func (i *interceptor) started(id string) bool {
	record, known := i.Store.Container(id)
	return known && record.State != runtimeapi.ContainerState_CONTAINER_CREATED
}

// fileWritten makes the event of a file that was written, or was not: err says why. That the
// node's cgroup driver is not supported is one event, and not one for each file.
func (i *interceptor) fileWritten(ctx context.Context, e *event, o plugin.Owned, err error) {
	switch {
	case err == nil && i.Observer.Wants(observe.KindCgroupFileWritten):
		i.Observer.Observe(ctx, &observe.CgroupFileWritten{Plugin: o.Plugin, Object: e.About(), File: o.Change.Key, Value: o.Change.Text})
	case err == nil:
	case errors.Is(err, cgroup.ErrSystemd):
		if i.Cgroups.FirstSystemd() {
			i.Observer.Observe(ctx, &observe.CgroupFilesUnsupported{Err: cgroup.ErrSystemd})
		}
	case o.Change.Object >= abi.FirstHandle:
		i.updateFailed(ctx, e, []plugin.Owned{o}, err)
	default:
		i.Observer.Observe(ctx, &observe.CgroupFileFailed{Plugin: o.Plugin, Object: e.About(), File: o.Change.Key, Err: err})
	}
}

// suspend clears cgroup values of a container that would make the kernel refuse an update. It
// returns nil if there are none.
func (i *interceptor) suspend(ctx context.Context, e *event, c *crifield.Container, r *runtimeapi.UpdateContainerResourcesRequest) *cgroup.Suspension {
	if i.Cgroups == nil {
		return nil
	}
	group, err := i.group(ctx, crifield.Object{Container: c})
	if err != nil && (errors.Is(err, cgroup.ErrSystemd) || !i.started(c.ID)) { // it has nothing that was written
		return nil
	}
	var hold *cgroup.Suspension
	if err == nil {
		hold, err = i.Cgroups.SuspendForUpdate(group, cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()})
	}
	if err != nil {
		i.Observer.Observe(ctx, &observe.SuspendFailed{Object: e.aboutContainer(c), Err: err})
	}
	return hold
}

// restore writes back what suspend cleared.
func (i *interceptor) restore(ctx context.Context, e *event, hold *cgroup.Suspension, accepted bool) {
	if err := hold.Restore(accepted); err != nil {
		i.Observer.Observe(ctx, &observe.RestoreFailed{Object: e.About(), Err: err})
	}
}
