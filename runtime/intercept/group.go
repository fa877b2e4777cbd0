package intercept

import (
	"context"
	"errors"
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

// containerGroup returns where the runtime or the kernel has reported the container, else
// where containerd and Docker put it. If nothing is there, the runtime is asked once:
// CRI-O has another name for it.
func (i *interceptor) containerGroup(ctx context.Context, c *crifield.Container) (string, error) {
	record, known := i.Store.Container(c.ID)
	if record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	group, err := i.groupByRule(record, c)
	if err == nil && i.Cgroups.Exists(group) || errors.Is(err, cgroup.ErrSystemd) || !known || record.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return group, err
	}
	ctx, cancel := context.WithTimeout(ctx, readThroughTime)
	defer cancel()
	if record, askErr := i.Store.Locate(ctx, i.Backend, c.ID); askErr == nil && record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	return group, err
}

func (i *interceptor) groupByRule(record pods.Container, c *crifield.Container) (string, error) {
	parent := record.CgroupParent
	if parent == "" {
		pod, _ := i.Store.Pod(c.PodID)
		parent = crifield.PodOf(pod).Parent()
		if parent == "" && pod.Unreported != 0 {
			return "", errNoGroup
		}
	}
	return cgroup.ContainerPath(parent, c.ID)
}
