package intercept

import (
	"iter"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// containerView is a container as plugins see it, as [podView] is a pod.
type containerView struct {
	id, podID   string
	state       string // "" while it is made
	config      *runtimeapi.ContainerConfig
	annotations map[string]string
	resources   *runtimeapi.LinuxContainerResources // nil if there are none
	untold      pods.Parts                          // see [pods.Container]
}

func viewContainer(c pods.Container) *containerView {
	return &containerView{
		id: c.ID, podID: c.PodID, state: containerState(c.State), config: c.Config,
		annotations: c.Config.GetAnnotations(), resources: c.Config.GetLinux().GetResources(), untold: c.Untold,
	}
}

func containerState(s runtimeapi.ContainerState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "CONTAINER_"))
}

func (c *containerView) int64(f abi.Field) (int64, bool) {
	security := c.config.GetLinux().GetSecurityContext()
	switch f {
	case abi.ContainerAttempt:
		return int64(c.config.GetMetadata().GetAttempt()), true
	case abi.ContainerRunAsUser:
		return security.GetRunAsUser().GetValue(), security.GetRunAsUser() != nil
	case abi.ContainerRunAsGroup:
		return security.GetRunAsGroup().GetValue(), security.GetRunAsGroup() != nil
	case abi.ContainerPrivileged:
		return flag(security.GetPrivileged()), true
	case abi.ContainerReadonlyRootfs:
		return flag(security.GetReadonlyRootfs()), true
	}
	return resourceInt64(c.resources, f-abi.Resources)
}

func (c *containerView) text(f abi.Field) (string, bool) {
	switch f {
	case abi.ContainerID:
		return c.id, true
	case abi.ContainerName:
		return c.config.GetMetadata().GetName(), true
	case abi.ContainerImage:
		return image(c.config.GetImage()), true
	case abi.ContainerPodID:
		return c.podID, true
	case abi.ContainerState:
		return c.state, true
	case abi.ContainerWorkingDir:
		return c.config.GetWorkingDir(), true
	case abi.ContainerRunAsUsername:
		return c.config.GetLinux().GetSecurityContext().GetRunAsUsername(), true
	case abi.ContainerLogPath:
		return c.config.GetLogPath(), true
	}
	return resourceText(c.resources, f-abi.Resources)
}

func (c *containerView) entries(f abi.Field) (iter.Seq2[string, string], bool) {
	switch f {
	case abi.ContainerLabels:
		return sorted(c.config.GetLabels()), true
	case abi.ContainerAnnotations:
		return sorted(c.annotations), true
	case abi.ContainerEnv:
		return env(c.config.GetEnvs()), true
	}
	return resourceEntries(c.resources, f-abi.Resources)
}

func (c *containerView) lookup(f abi.Field, key string) (string, bool) {
	switch f {
	case abi.ContainerLabels:
		v, ok := c.config.GetLabels()[key]
		return v, ok
	case abi.ContainerAnnotations:
		v, ok := c.annotations[key]
		return v, ok
	}
	entries, ok := c.entries(f)
	if !ok {
		return "", false
	}
	return find(entries, key)
}

func (c *containerView) list(f abi.Field) ([]string, bool) {
	switch f {
	case abi.ContainerCommand:
		return c.config.GetCommand(), true
	case abi.ContainerArgs:
		return c.config.GetArgs(), true
	case abi.ContainerMounts:
		return each(c.config.GetMounts(), mountRecord), true
	case abi.ContainerDevices:
		return each(c.config.GetDevices(), deviceRecord), true
	case abi.ContainerCDIDevices:
		return each(c.config.GetCDIDevices(), (*runtimeapi.CDIDevice).GetName), true
	case abi.ContainerSupplementalGroups:
		return each(c.config.GetLinux().GetSecurityContext().GetSupplementalGroups(), decimal), true
	}
	return nil, false
}

// size is how many entries or elements a field of the container has; 0 for a field that
// cannot have many.
func (c *containerView) size(f abi.Field) int {
	switch f {
	case abi.ContainerLabels:
		return len(c.config.GetLabels())
	case abi.ContainerAnnotations:
		return len(c.annotations)
	case abi.ContainerEnv:
		return len(c.config.GetEnvs())
	case abi.ContainerMounts:
		return len(c.config.GetMounts())
	case abi.ContainerDevices:
		return len(c.config.GetDevices())
	case abi.ContainerCDIDevices:
		return len(c.config.GetCDIDevices())
	case abi.ContainerCommand:
		return len(c.config.GetCommand())
	case abi.ContainerArgs:
		return len(c.config.GetArgs())
	case abi.ContainerSupplementalGroups:
		return len(c.config.GetLinux().GetSecurityContext().GetSupplementalGroups())
	}
	return 0
}

// image returns the image as its user wrote it, where the caller says so.
func image(spec *runtimeapi.ImageSpec) string {
	if asked := spec.GetUserSpecifiedImage(); asked != "" {
		return asked
	}
	return spec.GetImage()
}

func env(vars []*runtimeapi.KeyValue) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, v := range vars {
			if !yield(v.GetKey(), string(v.GetValue())) {
				return
			}
		}
	}
}
