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

// locator finds cgroups. Reads, writes and holds all go by it.
type locator struct {
	store   *pods.Store
	backend pods.Backend
	cgroups *cgroup.FS // not nil
}

func (i *interceptor) locator() locator { return locator{i.Store, i.Backend, i.Cgroups} }

// group returns the cgroup of a pod, which kubelet made, or of a container.
func (l locator) group(ctx context.Context, o crifield.Object) (string, error) {
	if o.Pod == nil {
		return l.container(ctx, o.Container)
	}
	if o.Pod.Cgroup == "" && o.Pod.Unreported != 0 {
		return "", errNoGroup
	}
	return cgroup.PodPath(o.Pod.Cgroup)
}

// container returns where the runtime or the kernel has reported the container, else
// where containerd and Docker put it. If nothing is there, the runtime is asked once:
// CRI-O has another name for it.
func (l locator) container(ctx context.Context, c *crifield.Container) (string, error) {
	record, known := l.store.Container(c.ID)
	if record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	group, err := l.byRule(record, c)
	if err == nil && l.cgroups.Exists(group) || errors.Is(err, cgroup.ErrSystemd) || !known || record.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return group, err
	}
	ctx, cancel := context.WithTimeout(ctx, readThroughTime)
	defer cancel()
	if record, askErr := l.store.Locate(ctx, l.backend, c.ID); askErr == nil && record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	return group, err
}

func (l locator) byRule(record pods.Container, c *crifield.Container) (string, error) {
	parent := record.CgroupParent
	if parent == "" {
		pod, _ := l.store.Pod(c.PodID)
		parent = crifield.PodOf(pod).Parent()
		if parent == "" && pod.Unreported != 0 {
			return "", errNoGroup
		}
	}
	return cgroup.ContainerPath(parent, c.ID)
}
