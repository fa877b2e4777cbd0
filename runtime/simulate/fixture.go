package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
)

// FromFixture returns the event of a fixture's case, on a node with this cgroup version if
// the case does not say one; 0 is a node without cgroup files, but for a case that has some.
// Pods and containers without an id get one.
func FromFixture(c fixture.Case, cgroupVersion int) *Event {
	switch {
	case c.Files != nil:
		cgroupVersion = c.Files.Version()
	case c.Node["cgroup_version"] != nil:
		cgroupVersion = int(values{c.Node}.number("cgroup_version"))
	case cgroupVersion == 0 && len(c.Readable) > 0:
		cgroupVersion = 2
	}
	own := newPodFixture("pod", fixture.Pod{Fields: c.Pod, Containers: c.Siblings})
	var a *containerFixture
	if c.Container != nil || c.Hook.Info().Object == abi.Container {
		a = own.add("container", c.Container)
	}
	e := own.event(c.Hook, a, c.Event)
	for i, p := range c.Store {
		other := newPodFixture("pod-"+strconv.Itoa(i+1), p)
		e.Before = append(other.earlier(other.containers), e.Before...)
	}
	if c.Pod == nil && c.Container == nil && c.Hook.Info().Object == abi.Event {
		e.forget(own)
	}
	e.Files, e.Config, e.Grant, e.KV = c.Readable, c.Config, c.Grant, c.KV
	e.Earlier, e.Time, e.Raw = c.Earlier, time.Unix(0, c.Time), c.Request
	e.node(values{c.Node}, cgroupVersion)
	e.rename(own, a)
	return e
}

// forget takes out the pod of an event that is about none.
func (e *Event) forget(own *podFixture) {
	if r, ok := e.Call.Request.(*runtimeapi.PullImageRequest); ok {
		r.SandboxConfig = nil
	}
	e.Before = slices.DeleteFunc(e.Before, func(c Call) bool { return c.Request == own.run })
}

// rename gives cgroup files of the event's own objects their ids.
func (e *Event) rename(own *podFixture, a *containerFixture) {
	files := map[string]map[string]string{}
	for name, of := range e.Files {
		switch {
		case name == abi.Pod.String():
			name = own.id
		case name == abi.Container.String() && a != nil:
			name = a.id
		}
		files[name] = of
	}
	e.Files = files
}

func (e *Event) node(f values, version int) {
	n := DefaultNode(version)
	n.RuntimeName, n.RuntimeVersion = cmp.Or(f.text("runtime_name"), n.RuntimeName), cmp.Or(f.text("runtime_version"), n.RuntimeVersion)
	n.CgroupDriver, n.Kernel = cmp.Or(f.text("cgroup_driver"), n.CgroupDriver), cmp.Or(f.text("kernel"), n.Kernel)
	n.CPUs, n.Memory = cmp.Or(int(f.number("cpus")), n.CPUs), cmp.Or(f.number("memory"), n.Memory)
	if handlers := f.list("runtime_handlers"); handlers != nil {
		n.RuntimeHandlers = handlers
	}
	e.Node = n
}

func newPodFixture(id string, p fixture.Pod) *podFixture {
	f := values{p.Fields}
	s := &podFixture{id: cmp.Or(f.text("id"), id), state: f.text("state")}
	s.run = &runtimeapi.RunPodSandboxRequest{Config: f.sandbox(s.id), RuntimeHandler: f.text("runtime_handler")}
	s.resize = &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: s.id, Overhead: f.resources("overhead."), Resources: f.resources("resources.")}
	for i, container := range p.Containers {
		s.add(fmt.Sprintf("%s-container-%d", s.id, i+1), container)
	}
	return s
}

func (p *podFixture) add(id string, fields fixture.Fields) *containerFixture {
	f := values{fields}
	a := &containerFixture{id: cmp.Or(f.text("id"), id), state: f.text("state")}
	a.create = &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: f.container(), SandboxConfig: p.run.GetConfig()}
	a.update = &runtimeapi.UpdateContainerResourcesRequest{ContainerId: a.id, Linux: f.resources("resources.")}
	p.containers = append(p.containers, a)
	return a
}
