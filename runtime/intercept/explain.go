package intercept

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Explain tells which values the pod, or one container of it, has that the text names, in the
// form explain.Form: from the ledger, the store and the kernel. An error of the text is an
// *explain.Error.
func Explain(ctx context.Context, o Options, text string) (*explain.Report, error) {
	i := &interceptor{Options: o}
	all := i.newest()
	var names []explain.Name
	for _, p := range all {
		pod := nameInReport(p.Config)
		names = append(names, pod)
		for _, c := range newestOf(i.Store.Containers(p.ID)) {
			names = append(names, explain.Name{Namespace: pod.Namespace, Pod: pod.Pod, Container: c.Config.GetMetadata().GetName()})
		}
	}
	meant, err := explain.Find(names, text)
	if err != nil {
		return nil, err
	}
	r := &explain.Report{Pods: []explain.Pod{}}
	for _, p := range all {
		if n := nameInReport(p.Config); n.Namespace == meant.Namespace && n.Pod == meant.Pod {
			r.Pods = append(r.Pods, i.explainPod(ctx, p, meant.Container))
		}
	}
	return r, nil
}

func nameInReport(config *runtimeapi.PodSandboxConfig) explain.Name {
	return explain.Name{Namespace: config.GetMetadata().GetNamespace(), Pod: config.GetMetadata().GetName()}
}

// newest are the newest sandboxes of all pods.
func (i *interceptor) newest() (all []pods.Pod) {
	seen := map[string]bool{}
	for _, p := range i.Store.Pods() {
		uid := uidOf(p.Config)
		if seen[uid] {
			continue
		}
		seen[uid] = true
		if newest, ok := i.podOf(uid); ok {
			if p, ok := i.Store.Pod(newest.ID); ok {
				all = append(all, p)
			}
		}
	}
	return all
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
func (i *interceptor) explainPod(ctx context.Context, p pods.Pod, container string) explain.Pod {
	meta, pod := p.Config.GetMetadata(), crifield.PodOf(p)
	x := explain.Pod{Namespace: meta.GetNamespace(), Name: meta.GetName(), UID: meta.GetUid(), Containers: []explain.Container{}}
	x.ID, x.State, x.Running = p.ID, short(p.State.String()), p.State == runtimeapi.PodSandboxState_SANDBOX_READY
	i.explainObject(ctx, &x.Object, crifield.Object{Pod: pod}, nil)
	for _, c := range newestOf(i.Store.Containers(p.ID)) {
		name := c.Config.GetMetadata().GetName()
		if container != "" && container != name {
			continue
		}
		y := explain.Container{Name: name}
		y.ID, y.State, y.Running = c.ID, short(c.State.String()), c.State == runtimeapi.ContainerState_CONTAINER_RUNNING
		i.explainObject(ctx, &y.Object, crifield.Object{Container: crifield.ContainerOf(c)}, c.Config.GetLinux().GetResources())
		x.Containers = append(x.Containers, y)
	}
	return x
}

// short is a state of CRI without what all have in common: running of CONTAINER_RUNNING.
func short(state string) string { return strings.ToLower(state[strings.LastIndexByte(state, '_')+1:]) }

// explainObject has the values of an object in x. has are the resources that the runtime has.
func (i *interceptor) explainObject(ctx context.Context, x *explain.Object, o crifield.Object, has *runtimeapi.LinuxContainerResources) {
	id := i.idOf(o)
	record := i.Ledger.Record(id)
	kernel := i.kernelOf(ctx, x, id, o)
	fields := map[ledger.Target]*ledger.Value{}
	if has != nil {
		for t, value := range resourceValues(has) {
			fields[t] = &ledger.Value{Kubelet: &value, Sent: value} // if no plugin has changed it
		}
	}
	period, _ := strconv.ParseInt(kernel.fields[fieldTarget(abi.Resources+abi.CPUPeriod, "")], 10, 64)
	var files []explain.Value
	for _, t := range slices.Sorted(maps.Keys(record)) {
		v := record[t]
		if file, ok := t.File(); ok {
			files = append(files, x.OfFile(file, &v, kernel.file(file)))
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
		x.Values = append(x.Values, x.OfField(strings.TrimPrefix(string(t), string(ledger.Field(""))), v, kernel.field(t), clearable, period))
	}
	x.Values = append(x.Values, files...)
	if x.Values == nil {
		x.Values = []explain.Value{}
	}
}

// groupState is what the kernel holds of an object.
type groupState struct {
	fields map[ledger.Target]string
	read   func(file string) (string, error) // nil if there is no group
}

// kernelOf reads what the kernel holds, and notes in x where that is, or why it is not known.
func (i *interceptor) kernelOf(ctx context.Context, x *explain.Object, id ledger.ID, o crifield.Object) (s groupState) {
	if !x.Running {
		return s
	}
	if i.Cgroups == nil {
		x.Unread = "cgroup-root is empty"
		return s
	}
	group, err := i.groupOf(ctx, id, o)
	if err != nil {
		x.Unread = err.Error()
		return s
	}
	x.Cgroup = group
	r, _, err := kernel{i.Cgroups}.Resources(group)
	if err != nil {
		x.Unread = err.Error()
		return s
	}
	s.fields, s.read = resourceValues(r), func(file string) (string, error) { return i.Cgroups.Get(group, file) }
	return s
}

func (s *groupState) file(name string) *string {
	if s.read == nil {
		return nil
	}
	value, err := s.read(name)
	if err != nil {
		return nil
	}
	return &value
}

// field is what the kernel holds for a field: for an entry of unified, what is in the file.
func (s *groupState) field(t ledger.Target) *string {
	if value, ok := s.fields[t]; ok {
		return &value
	}
	if t == fieldTarget(abi.Resources+abi.CPUShares, "") { // v2 has a weight for several numbers of shares
		if weight := s.file("cpu.weight"); weight != nil {
			text := "weight " + *weight
			return &text
		}
		return nil
	}
	key, unified := strings.CutPrefix(string(t), string(fieldTarget(abi.Resources+abi.Unified, ""))+"[")
	if !unified {
		return nil
	}
	return s.file(strings.TrimSuffix(key, "]"))
}
