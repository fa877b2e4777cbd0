package intercept

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// observe tells the store of a call that succeeded, before the caller hears of
// it: kubelet's next call may follow at once.
func (c *call) observe(ctx context.Context, answer *cri.Frame) {
	if c.method.Effect == cri.Nothing && !c.Chain.Hooks().Has(c.method.Post) {
		return
	}
	resp := c.method.NewResponse()
	if err := answer.Decode(resp); err != nil {
		c.Observer.Observe(ctx, &observe.StoreNotUpdated{Method: c.method.Name, Err: err})
		c.event = nil
		return
	}
	c.born(resp)
	if c.method.Effect != cri.Nothing {
		c.Store.Observe(c.asked(), c.req, resp)
	}
	if c.event != nil {
		c.event.answered(&c.method, resp, c.Store)
	}
}

// answered makes the event one of what the call has left behind.
func (e *event) answered(m *cri.Method, resp proto.Message, store *pods.Store) {
	e.about.resp = resp
	switch {
	case m.Effect != cri.Makes:
	case m.Object == abi.Pod:
		e.pod.ID = cri.PodID(resp)
	default:
		e.container.ID = cri.ContainerID(resp)
	}
	if e.pod != nil {
		if record, ok := store.Pod(e.pod.ID); ok {
			e.pod.State = crifield.PodState(record.State)
		}
	}
	if e.container != nil {
		if record, ok := store.Container(e.container.ID); ok {
			e.container.State = crifield.ContainerState(record.State)
		}
	}
}

// asked is the request as kubelet sent it, where the store wants it: of a pod, and of a
// container whose pod's config is not fully known. Others would have to be decoded
// once more for nobody.
func (c *call) asked() proto.Message {
	wanted := c.dirty && c.method.Effect == cri.Makes
	if wanted && c.method.Object == abi.Container {
		pod, _ := c.Store.Pod(cri.PodID(c.req))
		wanted = pod.Unreported != 0
	}
	if !wanted {
		return c.req
	}
	asked := c.method.NewRequest()
	if err := c.frame.Decode(asked); err != nil { // it could be decoded a moment ago
		return c.req
	}
	return asked
}

// writePodFiles writes the cgroup files of a pod that is about to run: kubelet
// has made its cgroup. A plugin that must not be ignored refuses the pod if its
// wish cannot be carried out.
func (c *call) writePodFiles(ctx context.Context) error {
	for _, o := range c.owned {
		if o.Change.Op != plugin.WriteFile || o.Change.Object != abi.Pod {
			continue
		}
		err := c.writePodFile(ctx, c.event, o.Change)
		if err != nil && o.Policy == plugin.Fail {
			return &plugin.Error{Plugin: o.Plugin, Hook: c.event.hook, Err: err}
		}
		if err != nil {
			c.fileNotWritten(ctx, &observe.CgroupFileFailed{Plugin: o.Plugin, Object: c.event.About(), File: o.Change.Key, Err: err})
		}
	}
	return nil
}

func (i *interceptor) writePodFile(ctx context.Context, e *event, change plugin.Change) error {
	group, err := i.locator().group(ctx, crifield.Object{Pod: e.pod})
	if err != nil {
		return err
	}
	return i.Cgroups.Write(group, change.Key, change.Text)
}

// writeContainerFiles remembers the cgroup files that plugins want of the
// container, and writes them if the call left it running: all that were
// remembered when it has started, those of this call when it was updated.
func (c *call) writeContainerFiles(ctx context.Context) {
	if c.event == nil || c.event.container == nil || c.Cgroups == nil {
		return
	}
	wanted := c.want(c.owned)
	switch c.method.Effect {
	case cri.Starts:
		record, _ := c.Store.Container(c.event.container.ID)
		c.writeFiles(ctx, c.event, c.event.container, record.CgroupFiles)
	case cri.Updates:
		c.writeFiles(ctx, c.event, c.event.container, wanted)
	}
}

// want adds the cgroup files among the changes to those that the store keeps
// for the container, and returns them.
func (c *call) want(owned []plugin.Owned) map[string]string {
	files := map[string]string{}
	for _, o := range owned {
		if o.Change.Op == plugin.WriteFile && o.Change.Object == abi.Container {
			files[o.Change.Key] = o.Change.Text
		}
	}
	if len(files) > 0 {
		c.Store.AddCgroupFiles(c.event.container.ID, files)
	}
	return files
}

// writePostFiles writes what post hooks asked for of the event's own pod or
// container.
func (c *call) writePostFiles(ctx context.Context, owned []plugin.Owned) {
	c.owned = owned
	c.writePodFilesOf(ctx, c.event, owned)
	if c.event.container == nil {
		return
	}
	files := c.want(owned)
	if c.event.hook != abi.PostCreateContainer || c.started(c.event.container.ID) {
		c.writeFiles(ctx, c.event, c.event.container, files)
	}
}

// writePodFilesOf writes files of the event's pod. It is too late to refuse
// anything for what fails.
func (i *interceptor) writePodFilesOf(ctx context.Context, e *event, owned []plugin.Owned) {
	for _, o := range owned {
		if o.Change.Op != plugin.WriteFile || o.Change.Object != abi.Pod {
			continue
		}
		if err := i.writePodFile(ctx, e, o.Change); err != nil {
			i.fileNotWritten(ctx, &observe.CgroupFileFailed{Plugin: o.Plugin, Object: e.About(), File: o.Change.Key, Err: err})
		}
	}
}

// started reports whether the container has left the state in which it has no
// cgroup yet. Who asks has noted what it wants before, and StartContainer looks
// for that after it has noted the start: so one of the two writes it.
func (i *interceptor) started(id string) bool {
	record, known := i.Store.Container(id)
	return known && record.State != runtimeapi.ContainerState_CONTAINER_CREATED
}

// writeFiles writes files of a container's cgroup, in any order: each is
// independent of the others, and what fails is logged as of e.
func (i *interceptor) writeFiles(ctx context.Context, e *event, c *crifield.Container, files map[string]string) {
	if len(files) == 0 {
		return
	}
	group, err := i.locator().group(ctx, crifield.Object{Container: c})
	for file, value := range files {
		writeErr := err
		if writeErr == nil {
			writeErr = i.Cgroups.Write(group, file, value)
		}
		if writeErr != nil {
			i.fileNotWritten(ctx, &observe.CgroupFileFailed{Object: e.aboutContainer(c), File: file, Err: writeErr})
		}
	}
}

// fileNotWritten tells of a failure. That the node's cgroup driver is not supported is
// one event, and not one of each file.
func (i *interceptor) fileNotWritten(ctx context.Context, e *observe.CgroupFileFailed) {
	if !errors.Is(e.Err, cgroup.ErrSystemd) {
		i.Observer.Observe(ctx, e)
	} else if i.Cgroups.FirstSystemd() {
		i.Observer.Observe(ctx, &observe.CgroupFilesUnsupported{Err: cgroup.ErrSystemd})
	}
}

// hold takes cgroup values of a container out of the way of an update that the
// kernel would refuse because of them. It returns nil if there is nothing to hold.
func (i *interceptor) hold(ctx context.Context, e *event, c *crifield.Container, r *runtimeapi.UpdateContainerResourcesRequest) *cgroup.Suspension {
	if i.Cgroups == nil {
		return nil
	}
	group, err := i.locator().group(ctx, crifield.Object{Container: c})
	if err != nil {
		if !errors.Is(err, cgroup.ErrSystemd) && i.started(c.ID) { // else it holds nothing that was written
			i.Observer.Observe(ctx, &observe.SuspendFailed{Object: e.aboutContainer(c), Err: err})
		}
		return nil
	}
	hold, err := i.Cgroups.SuspendForUpdate(group, cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()})
	if err != nil {
		i.Observer.Observe(ctx, &observe.SuspendFailed{Object: e.aboutContainer(c), Err: err})
	}
	return hold
}

func (i *interceptor) restore(ctx context.Context, e *event, hold *cgroup.Suspension, accepted bool) {
	if err := hold.Restore(accepted); err != nil {
		i.Observer.Observe(ctx, &observe.RestoreFailed{Object: e.About(), Err: err})
	}
}
