package intercept

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// errNoGroup is why there is no path to a cgroup that may well be there.
var errNoGroup = fmt.Errorf("%w: neither the runtime nor the kernel tells where the cgroup is", abi.Unsupported)

// group returns the cgroup of a pod, which kubelet made, or of a container.
func (i *interceptor) group(ctx context.Context, o crifield.Object) (string, error) {
	if o.Pod == nil {
		return i.containerGroup(ctx, o.Container)
	}
	if o.Pod.Cgroup == "" && o.Pod.Unreported != 0 {
		return "", errNoGroup
	}
	return cgroup.PodPath(o.Pod.Cgroup)
}

// containerGroup returns where the runtime or the kernel has reported the container, else the
// one of the runtimes' names that exists. If none does, the runtime is asked once.
func (i *interceptor) containerGroup(ctx context.Context, c *crifield.Container) (string, error) {
	record, known := i.Store.Container(c.ID)
	if record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	group, exists, err := i.groupByName(record, c)
	if exists && known {
		i.Store.Located(c.ID, group)
	}
	if exists || !known || record.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return group, err
	}
	ctx, cancel := context.WithTimeout(ctx, readThroughTime)
	defer cancel()
	if record, askErr := i.Store.Locate(ctx, i.Backend, c.ID); askErr == nil && record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	return group, err
}

func (i *interceptor) groupByName(record pods.Container, c *crifield.Container) (group string, exists bool, err error) {
	parent := record.CgroupParent
	if parent == "" {
		pod, _ := i.Store.Pod(c.PodID)
		parent = crifield.PodOf(pod).Parent()
		if parent == "" && pod.Unreported != 0 {
			return "", false, errNoGroup
		}
	}
	return i.Cgroups.FindContainer(parent, c.ID)
}
