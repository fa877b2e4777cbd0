package intercept_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// kubelet takes a container of a pod one step on.
func (w *modelWorld) kubelet(p *modelPod, name string) string {
	c := p.containers[name]
	switch {
	case p.sandbox == "":
		return w.runSandbox(p)
	case c == nil:
		return w.create(p, name)
	case c.state == runtimeapi.ContainerState_CONTAINER_CREATED:
		w.call("StartContainer", p, c, &runtimeapi.StartContainerRequest{ContainerId: c.id}, &runtimeapi.StartContainerResponse{})
		return "start " + c.id
	case c.state == runtimeapi.ContainerState_CONTAINER_EXITED:
		if w.r.IntN(2) == 0 {
			return w.remove(p, c)
		}
		return w.create(p, name)
	}
	switch w.r.IntN(20) {
	case 0:
		w.runtime.mu.Lock()
		c.end(w.runtime)
		w.runtime.mu.Unlock()
		return c.id + " ends by itself"
	case 1:
		w.call("StopContainer", p, c, &runtimeapi.StopContainerRequest{ContainerId: c.id}, &runtimeapi.StopContainerResponse{})
		return "stop " + c.id
	}
	for _, old := range w.runtime.containersOf(p) {
		if p.containers[old.name] != old && w.r.IntN(2) == 0 {
			return w.remove(p, old)
		}
	}
	return w.resize(p, c)
}

func (w *modelWorld) runSandbox(p *modelPod) string {
	p.sandbox = w.name("sandbox")
	req := &runtimeapi.RunPodSandboxRequest{Config: p.config()}
	for !w.call("RunPodSandbox", p, nil, req, &runtimeapi.RunPodSandboxResponse{PodSandboxId: p.sandbox}) {
		if w.revive() && w.runtime.sandboxes[p.sandbox] != nil {
			w.sweep()
			return "run, killed: " + p.sandbox
		}
	}
	w.grant(w.asked)
	return "run " + p.sandbox + " of " + p.uid
}

func (w *modelWorld) create(p *modelPod, name string) string {
	attempt := p.attempts[name]
	p.attempts[name]++
	c := &modelContainer{id: w.name("c"), name: name, pod: p, kubelet: map[string]string{}, former: map[string]map[string]bool{}}
	c.modelObject = modelObject{group: filepath.Join(p.group, c.id), foreign: map[string]string{}, wishes: map[string][]modelWish{}}
	fields := setFields[:3]
	if w.r.IntN(2) == 0 {
		fields = setFields
	}
	for _, f := range fields {
		c.kubelet[f] = fieldValue(f, w.r.IntN(4))
	}
	req := &runtimeapi.CreateContainerRequest{PodSandboxId: p.sandbox, SandboxConfig: p.config(), Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Linux:    &runtimeapi.LinuxContainerConfig{Resources: request(c.kubelet)},
	}}
	if !w.call("CreateContainer", p, c, req, &runtimeapi.CreateContainerResponse{ContainerId: c.id}) {
		w.revive()
		if w.runtime.container(c.id) != nil { // kubelet does not know it
			w.remove(p, c)
		}
		return "create, without an answer: " + c.id
	}
	for i := range w.asked {
		w.asked[i].of = &c.modelObject
	}
	w.grant(w.asked)
	c.changes = 0 // the call has set them
	return fmt.Sprintf("create %s, attempt %d of %s of %s, with %v", c.id, attempt, name, p.uid, c.kubelet)
}

func (w *modelWorld) remove(p *modelPod, c *modelContainer) string {
	req := &runtimeapi.RemoveContainerRequest{ContainerId: c.id}
	for !w.call("RemoveContainer", p, c, req, &runtimeapi.RemoveContainerResponse{}) {
		w.revive()
	}
	if p.containers[c.name] == c {
		delete(p.containers, c.name)
	}
	return "remove " + c.id
}

// resize is an update by kubelet of the CPU or the memory, which may change nothing.
func (w *modelWorld) resize(p *modelPod, c *modelContainer) string {
	fields := [][]string{{"cpu_quota", "cpu_shares"}, {"memory_limit_in_bytes", "unified[memory.high]"}, {"cpuset_cpus"}}[w.r.IntN(3)]
	named := c.resources(fields...)
	if w.r.IntN(2) == 0 {
		f := fields[w.r.IntN(len(fields))]
		named[f] = fieldValue(f, w.r.IntN(4))
	}
	w.naming = map[string]bool{}
	for f, value := range named {
		w.naming["field "+f] = c.kubelet[f] != value
	}
	req := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id}
	what := fmt.Sprintf("kubelet updates %s: %v", c.id, named)
	for {
		req.Linux = request(named)
		if w.call("UpdateContainerResources", p, c, req, &runtimeapi.UpdateContainerResourcesResponse{}) {
			break
		}
		for f, value := range named { // a proxy that comes to know the field now has this for kubelet's
			if w.killed != "" && c.has[f] == value && len(c.wishes["field "+f]) == 0 && !c.unsettled {
				c.kubelet[f] = value
			}
		}
		if !w.revive() && w.r.IntN(2) == 0 {
			w.naming = nil
			return what + ", which is refused"
		}
	}
	for f, value := range named {
		w.hear(c, f, value)
	}
	before := c.changes
	for _, a := range w.asked {
		field, _ := strings.CutPrefix(a.target, "field ")
		held := func(wish modelWish) bool { return wish.plugin == a.wish.plugin }
		if a.ends && named[field] == "" && slices.ContainsFunc(c.wishes[a.target], held) {
			before++ // the call does not bring kubelet's value back
		}
	}
	w.grant(w.asked)
	c.changes, w.naming = before, nil // the call has set them
	return what
}

// hear notes a value that kubelet has sent: another one than before ends the wishes that are not repeated.
func (w *modelWorld) hear(c *modelContainer, f, value string) {
	t := "field " + f
	if c.kubelet[f] != value {
		c.kubelet[f] = value
		c.wishes[t] = slices.DeleteFunc(c.wishes[t], func(wish modelWish) bool {
			repeats := func(a modelAsk) bool {
				return a.of == &c.modelObject && a.target == t && a.wish.plugin == wish.plugin && !a.ends
			}
			return !slices.ContainsFunc(w.asked, repeats)
		})
	}
	delete(c.former, f)
}

// removeSandbox removes a pod's sandbox, and perhaps the pod, in whose place another one comes.
func (w *modelWorld) removeSandbox(p *modelPod) string {
	if p.sandbox == "" {
		return "nothing to remove"
	}
	for !w.call("StopPodSandbox", p, nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: p.sandbox}, &runtimeapi.StopPodSandboxResponse{}) {
		w.revive()
	}
	for _, c := range w.runtime.containersOf(p) {
		w.remove(p, c)
	}
	req := &runtimeapi.RemovePodSandboxRequest{PodSandboxId: p.sandbox}
	for !w.call("RemovePodSandbox", p, nil, req, &runtimeapi.RemovePodSandboxResponse{}) {
		w.revive()
	}
	what := "remove " + p.sandbox
	p.sandbox = ""
	p.attempt++
	if w.r.IntN(2) == 0 {
		check(os.RemoveAll(filepath.Join(w.runtime.cgroups, p.group)))
		w.pods[slices.Index(w.pods, p)] = w.newPod()
		what += ", and the pod"
	}
	return what
}
