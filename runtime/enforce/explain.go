package enforce

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Explain tells which values the pod, or one container of it, has that the text names, in the
// form explain.Form: from the ledger, the store and the kernel. An error of the text is an
// *explain.Error.
func (e *Enforcer) Explain(ctx context.Context, text string) (*explain.Report, error) {
	var newest []pods.Pod // sandboxes, one of each pod
	for _, p := range e.Store.Pods() {
		if pod := e.pod(UID(p.Config)); pod != nil && pod.ID == p.ID {
			newest = append(newest, p)
		}
	}
	var names []explain.Name
	for _, p := range newest {
		pod := nameInReport(p.Config)
		names = append(names, pod)
		for _, c := range newestOf(e.Store.Containers(p.ID)) {
			names = append(names, explain.Name{Namespace: pod.Namespace, Pod: pod.Pod, Container: c.Config.GetMetadata().GetName()})
		}
	}
	meant, err := explain.Find(names, text)
	if err != nil {
		return nil, err
	}
	r := &explain.Report{Pods: []explain.Pod{}}
	for _, p := range newest {
		if n := nameInReport(p.Config); n.Namespace == meant.Namespace && n.Pod == meant.Pod {
			r.Pods = append(r.Pods, e.of(ID{Pod: UID(p.Config)}).explainPod(ctx, p, meant.Container))
		}
	}
	return r, nil
}

func nameInReport(config *runtimeapi.PodSandboxConfig) explain.Name {
	return explain.Name{Namespace: config.GetMetadata().GetNamespace(), Pod: config.GetMetadata().GetName()}
}

// newestOf are the newest containers of each name, by name.
func newestOf(all []pods.Container) []pods.Container {
	byName := map[string]pods.Container{}
	for _, c := range all {
		name := c.Config.GetMetadata().GetName()
		if other, ok := byName[name]; !ok || c.Config.GetMetadata().GetAttempt() >= other.Config.GetMetadata().GetAttempt() {
			byName[name] = c
		}
	}
	newest := make([]pods.Container, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		newest = append(newest, byName[name])
	}
	return newest
}

// explainPod explains a pod with its containers, or with the one of this name.
func (w work) explainPod(ctx context.Context, p pods.Pod, container string) explain.Pod {
	meta, pod := p.Config.GetMetadata(), crifield.PodOf(p)
	x := explain.Pod{Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUid(), Containers: []explain.Container{}}
	x.ID, x.State, x.Running = p.ID, short(p.State.String()), true // kubelet keeps a pod's cgroup for its next sandbox
	reason := w.Ledger.Ignored(w.id.Pod)
	if reason != nil {
		x.Unowned = fmt.Sprintf("a record in state-dir was ignored: %v", reason)
	}
	w.explainObject(ctx, &x.Object, crifield.Object{Pod: pod}, nil, reason != nil)
	for _, c := range newestOf(w.Store.Containers(p.ID)) {
		name := c.Config.GetMetadata().GetName()
		if container != "" && container != name {
			continue
		}
		y := explain.Container{Name: name}
		y.ID, y.State, y.Running = c.ID, short(c.State.String()), c.State == runtimeapi.ContainerState_CONTAINER_RUNNING
		old := c.CgroupParent == "" // it was not seen to be created, so that the file may have had it
		own := crifield.Object{Container: crifield.ContainerOf(c)}
		w.of(w.ID(own)).explainObject(ctx, &y.Object, own, c.Config.GetLinux().GetResources(), reason != nil && old)
		for _, l := range w.ownLimits(ctx, c.ID) {
			y.Capped = fmt.Sprintf("the pod has resources of its own, or containers to come, so that its %s is not lifted from %s for %s", l.file, l.value, l.plugin)
		}
		x.Containers = append(x.Containers, y)
	}
	return x
}

// short is a state of CRI without what all have in common: running of CONTAINER_RUNNING.
func short(state string) string { return strings.ToLower(state[strings.LastIndexByte(state, '_')+1:]) }

// explainObject has the values of an object in x. has are the resources that the runtime has. unowned says that
// the object has values whose owner and whose value of kubelet are not known.
func (w work) explainObject(
	ctx context.Context, x *explain.Object, o crifield.Object, has *runtimeapi.LinuxContainerResources, unowned bool,
) {
	record := w.record.Values()
	kernel := w.kernelOf(ctx, x, o)
	defer kernel.Close()
	fields := map[Target]*Value{}
	if has != nil {
		for t, value := range Values(has) {
			fields[t] = &Value{Kubelet: &value, Last: value} // if no plugin has changed it
			if unowned {
				fields[t].Kubelet = nil
			}
		}
	}
	var files []explain.Value
	for _, t := range slices.Sorted(maps.Keys(record)) {
		v := record[t]
		if file, ok := t.File(); ok {
			held := shown{value: kernel.read(file)}
			held.meant = held.value != nil && v.Holds(file, *held.value, kernel)
			files = append(files, judgeFile(x, file, &v, held))
		} else {
			fields[t] = &v
		}
	}
	for _, t := range slices.Sorted(maps.Keys(fields)) {
		v := fields[t]
		clearable := false
		if v.Kubelet != nil {
			_, clearable = resetTo(t, *v.Kubelet)
		}
		name := strings.TrimPrefix(string(t), string(Field("")))
		x.Values = append(x.Values, judgeField(x, name, v, kernel.heldField(t, v.Last, has), clearable))
	}
	if unowned {
		files = append(files, kernel.unowned(x, record, fields)...)
	}
	slices.SortFunc(files, func(a, b explain.Value) int { return strings.Compare(a.Name, b.Name) })
	x.Values = append(x.Values, files...)
	if x.Values == nil {
		x.Values = []explain.Value{}
	}
}

// groupState is what the kernel holds of an object.
type groupState struct {
	groupFiles                   // without a Group there is none
	fields     map[Target]string // those that CRI and the kernel share
}

// kernelOf reads what the kernel holds, and notes in x where that is, or why it is not known. The
// caller closes it.
func (w work) kernelOf(ctx context.Context, x *explain.Object, o crifield.Object) (s groupState) {
	if !x.Running {
		return s
	}
	if w.Cgroups == nil {
		x.Unread = "cgroup-root is empty"
		return s
	}
	group, err := w.groupOf(ctx, o)
	if err != nil {
		x.Unread = err.Error()
		return s
	}
	x.Cgroup = group
	r, _, err := kernel{w.Cgroups}.Resources(group)
	if err == nil {
		return groupState{groupFiles{Group: w.Cgroups.Group(group)}, Values(r)}
	}
	if !w.ended(ctx, group) {
		x.Unread = err.Error()
		return s
	}
	x.Cgroup, x.Running = "", false
	if o.Container != nil { // nothing tells the store of one that has ended by itself
		x.State = "exited"
	}
	return s
}

func (s *groupState) read(file string) *string {
	if s.Group == nil {
		return nil
	}
	value, err := s.Read(file)
	if err != nil {
		return nil
	}
	return &value
}

// unowned are the files that plugins may write, as the kernel has them: of those without a record, and
// without a field that has the same value.
func (s *groupState) unowned(
	x *explain.Object, record map[Target]Value, fields map[Target]*Value,
) (all []explain.Value) {
	for k := range rules.Files {
		f := &rules.Files[k]
		_, recorded := record[File(f.Name)]
		if recorded || fields[fieldTarget(abi.Resources+abi.Unified, f.Name)] != nil || len(f.Fields) > 0 {
			continue
		}
		if value := s.read(f.Name); value != nil && *value != "" {
			all = append(all, judgeFile(x, f.Name, &Value{}, shown{value: value, meant: true}))
		}
	}
	return all
}

// heldField compares what the kernel holds for a field with what the runtime was sent. has are all
// resources that it was sent. An idle group shows no weight of its own.
func (s *groupState) heldField(t Target, sent string, has *runtimeapi.LinuxContainerResources) (h shown) {
	x, ok := fileOf(t)
	if _, valid := ChangeTo(t, sent); !ok || !valid {
		return h
	}
	text := s.read(x.file)
	if text == nil {
		return h
	}
	h = shown{value: text, meant: s.holdsField(x, sent, *text, has)}
	value, told := s.fields[t]
	switch {
	case told:
		h.value = &value
		h.meant = h.meant || x.text() && s.holdsField(x, sent, value, has) // a group of v2 may have its parent's cpuset
	case x.field == abi.Resources+abi.CPUShares:
		weight, idle := "weight "+*text, s.read(rules.CPUIdle)
		h = shown{value: &weight, meant: h.meant || idle != nil && *idle == "1"}
	}
	return h
}
