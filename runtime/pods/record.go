package pods

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// A Pod is a pod sandbox. It is a value; the messages in it are shared with the
// store and with other callers, and nobody may change them.
type Pod struct {
	ID string
	// Config is the sandbox config as it was sent to the backend, with the
	// overhead and resources of later updates. Never nil.
	Config *runtimeapi.PodSandboxConfig
	// Requested is the config as kubelet sent it. Nil when that is not known,
	// because the pod was read from the backend.
	Requested      *runtimeapi.PodSandboxConfig
	RuntimeHandler string
	State          runtimeapi.PodSandboxState
	// Unchanged says that Config was sent to the backend as kubelet sent it.
	Unchanged bool
	// Unreported are the parts of Config that the backend did not report: where they are zero or empty,
	// their values are not known.
	Unreported Parts
	// CgroupParent is where the kernel has the pod's containers, of a pod whose
	// config has no cgroup parent because it is unreported. "": not known either.
	CgroupParent string
}

// ByListAlone reports whether the backend lists the pod and could not tell its status yet.
func (p Pod) ByListAlone() bool { return p.Unreported&unread != 0 }

// A Container is a container of a pod sandbox. It is a value; the messages in it are shared
// with the store and with other callers, and nobody may change them.
type Container struct {
	ID, PodID string
	// Config is the container config as it was sent to the backend, with the
	// resources and annotations of later updates applied. Never nil, though
	// its Linux.Resources may be.
	Config *runtimeapi.ContainerConfig
	State  runtimeapi.ContainerState
	// CgroupParent is that of the pod config which was sent with the container,
	// and is what containerd goes by: a plugin may have given the container
	// another one than its pod has. Only a container that was seen to be created
	// has it.
	CgroupParent string
	// CgroupsPath is the container's cgroup as the kernel has it of the process that
	// the backend names, else linux.cgroupsPath of its runtime spec. Only a record read
	// from the backend has it, or [Store.Locate] or [Store.Located] was called for it.
	CgroupsPath string
	// Unreported are the parts of Config that the backend did not report, as for a [Pod].
	Unreported Parts
}

// ByListAlone reports whether the backend lists the container and could not tell its status yet.
func (c Container) ByListAlone() bool { return c.Unreported&unread != 0 }
