package intercept

import (
	"log/slog"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// observe tells the store of a call that succeeded, before the caller hears of
// it: kubelet's next call may follow at once.
func (c *call) observe(answer *cri.Frame) {
	resp := c.method.NewResponse()
	if err := answer.Decode(resp); err != nil {
		c.Log.WarnContext(c.ctx, "the store cannot follow an answer", "method", c.method.Name, "err", err)
		c.event = nil
		return
	}
	c.Store.Observe(c.asked(), c.req, resp)
	if c.event == nil {
		return
	}
	switch r := resp.(type) {
	case *runtimeapi.RunPodSandboxResponse:
		c.event.pod.id = r.GetPodSandboxId()
	case *runtimeapi.CreateContainerResponse:
		c.event.container.id = r.GetContainerId()
	}
}

// asked is the request as kubelet sent it, of a pod: nobody asks for a
// container's, which would have to be decoded once more.
func (c *call) asked() proto.Message {
	if _, pod := c.req.(*runtimeapi.RunPodSandboxRequest); !pod || !c.dirty {
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
func (c *call) writePodFiles() error {
	for _, o := range c.owned {
		if o.Change.Op != plugin.WriteFile || o.Change.Object != abi.Pod {
			continue
		}
		err := c.writePodFile(o.Change)
		if err != nil && o.Policy == plugin.Fail {
			return &plugin.Error{Plugin: o.Plugin, Hook: c.event.hook, Err: err}
		}
		if err != nil {
			c.fileNotWritten(o, err)
		}
	}
	return nil
}

func (c *call) writePodFile(change plugin.Change) error {
	group, err := cgroup.PodPath(c.event.pod.config.GetLinux().GetCgroupParent())
	if err != nil {
		return err
	}
	return c.Cgroups.Write(group, change.Key, change.Text)
}

// writeContainerFiles remembers the cgroup files that plugins want of the
// container, and writes them if the call left it running: all that were
// remembered when it has started, those of this call when it was updated.
func (c *call) writeContainerFiles() {
	if c.event == nil || c.event.container == nil || c.Cgroups == nil {
		return
	}
	wanted := c.want(c.owned)
	switch c.req.(type) {
	case *runtimeapi.StartContainerRequest:
		record, _ := c.Store.Container(c.event.container.id)
		c.writeFiles(record.CgroupFiles)
	case *runtimeapi.UpdateContainerResourcesRequest:
		c.writeFiles(wanted)
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
		id := c.event.container.id
		record, _ := c.Store.Container(id)
		c.Store.SetCgroupFiles(id, merged(record.CgroupFiles, files))
	}
	return files
}

// writePostFiles writes what post hooks asked for.
func (c *call) writePostFiles(owned []plugin.Owned) {
	c.owned = owned
	if c.event.container == nil {
		for _, o := range owned {
			if err := c.writePodFile(o.Change); err != nil {
				c.fileNotWritten(o, err)
			}
		}
		return
	}
	files := c.want(owned)
	if c.event.hook != abi.PostCreateContainer || c.started() {
		c.writeFiles(files)
	}
}

// started reports whether the container has left the state in which it has no
// cgroup yet. Who asks has noted what it wants before, and StartContainer looks
// for that after it has noted the start: so one of the two writes it.
func (c *call) started() bool {
	record, known := c.Store.Container(c.event.container.id)
	return known && record.State != runtimeapi.ContainerState_CONTAINER_CREATED
}

// writeFiles writes files of the container's cgroup, in any order: each is
// independent of the others, and what fails is logged.
func (c *call) writeFiles(files map[string]string) {
	if len(files) == 0 {
		return
	}
	group, err := c.group()
	for file, value := range files {
		writeErr := err
		if writeErr == nil {
			writeErr = c.Cgroups.Write(group, file, value)
		}
		if writeErr != nil {
			c.Log.ErrorContext(c.ctx, "cgroup file not written", slog.Any("", c.event), "file", file, "err", writeErr)
		}
	}
}

func (c *call) fileNotWritten(o plugin.Owned, err error) {
	c.Log.ErrorContext(c.ctx, "cgroup file not written", "plugin", o.Plugin, slog.Any("", c.event), "file", o.Change.Key, "err", err)
}

// group is the container's cgroup: what the runtime says, else where containerd
// puts it.
func (c *call) group() (string, error) {
	record, _ := c.Store.Container(c.event.container.id)
	if record.CgroupsPath != "" {
		return cgroup.PodPath(record.CgroupsPath)
	}
	parent := record.CgroupParent
	if parent == "" {
		parent = c.event.pod.config.GetLinux().GetCgroupParent()
	}
	return cgroup.ContainerPath(parent, c.event.container.id)
}

// hold takes cgroup values out of the way of an update that the kernel would
// refuse because of them. It returns nil if there is nothing to hold.
func (c *call) hold() *cgroup.Hold {
	r, ok := c.req.(*runtimeapi.UpdateContainerResourcesRequest)
	if !ok || c.event == nil || c.Cgroups == nil {
		return nil
	}
	group, err := c.group()
	if err != nil {
		return nil // no file of a group with such a path was ever written
	}
	hold, err := c.Cgroups.Hold(group, cgroup.Update{Quota: r.GetLinux().GetCpuQuota(), Unified: r.GetLinux().GetUnified()})
	if err != nil {
		c.Log.WarnContext(c.ctx, "cgroup values stay in the way of an update", slog.Any("", c.event), "err", err)
	}
	return hold
}

func (c *call) restore(hold *cgroup.Hold, accepted bool) {
	if err := hold.Restore(accepted); err != nil {
		c.Log.ErrorContext(c.ctx, "cgroup values not put back after an update", slog.Any("", c.event), "err", err)
	}
}
