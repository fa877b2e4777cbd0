package enforce

import (
	"context"
	"fmt"
	"maps"
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
)

// errNoGroup is why there is no path to a cgroup that may well be there.
var errNoGroup = fmt.Errorf("%w: neither the runtime nor the kernel tells where the cgroup is", abi.Unsupported)

// Group returns the cgroup of a pod, which kubelet made, or of a container: where the runtime or the kernel has reported it,
// else the one of the runtimes' names that exists. If none does, the runtime is asked once.
func (e *Enforcer) Group(ctx context.Context, o crifield.Object) (string, error) {
	c := o.Container
	switch {
	case o.Pod == nil:
	case o.Pod.Cgroup == "" && o.Pod.Unreported != 0:
		return "", errNoGroup
	default:
		return cgroup.PodPath(o.Pod.Cgroup)
	}
	record, known := e.Store.Container(c.ID)
	if record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	parent := record.CgroupParent
	pod, _ := e.Store.Pod(c.PodID)
	if parent == "" {
		parent = crifield.PodOf(pod).Parent()
	}
	group, exists, err := "", false, errNoGroup
	if parent != "" || pod.Unreported == 0 {
		group, exists, err = e.Cgroups.FindContainer(parent, c.ID)
	}
	if exists && known {
		e.Store.Located(c.ID, group)
	}
	if exists || !known || record.State == runtimeapi.ContainerState_CONTAINER_EXITED {
		return group, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if record, askErr := e.Store.Locate(ctx, e.Backend, c.ID); askErr == nil && record.CgroupsPath != "" {
		return cgroup.ReportedPath(record.CgroupsPath)
	}
	return group, err
}

// QOSClassGroup returns the cgroup of a pod's QoS class, which kubelet made.
func QOSClassGroup(p *crifield.Pod) (string, error) {
	if p.Cgroup == "" && p.Unreported != 0 {
		return "", errNoGroup
	}
	return cgroup.QOSClassPath(p.Cgroup)
}

// read finds the cgroup of an object and reads files of it. The caller closes the group.
func (w work) read(ctx context.Context, o crifield.Object, files []string) (g groupFiles) {
	group, none := w.groupOf(ctx, o)
	g.Group, g.none = w.Cgroups.Group(group), none
	if none == nil {
		w.record.Located(group)
		g.held = heldFiles(g.Group, files)
	}
	return g
}

// heldFiles reads files. One that shows no value of its own while the group is idle is left out.
func heldFiles(g *cgroup.Group, files []string) Held {
	held := make(Held, len(files)+1)
	ofIdle := func(file string) bool { x := rules.Find(file); return x != nil && x.Idle }
	if slices.ContainsFunc(files, ofIdle) && !slices.Contains(files, rules.CPUIdle) {
		files = append(files, rules.CPUIdle)
	}
	for _, file := range files {
		if value, err := g.Read(file); err == nil {
			held[file] = value
		}
	}
	if idle, known := held[rules.CPUIdle]; known && idle != "0" {
		maps.DeleteFunc(held, func(file, _ string) bool { return ofIdle(file) })
	}
	return held
}

// groupOf returns the cgroup of an object: where its files were written last, if that is there,
// since a cgroup never moves.
func (w work) groupOf(ctx context.Context, o crifield.Object) (string, error) {
	if group := w.record.Group(); group != "" && !w.Cgroups.Gone(group) {
		return group, nil
	}
	if o.Pod == nil && o.Container == nil {
		return "", errNoGroup
	}
	return w.Group(ctx, o)
}
