package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
)

// FromFixture returns the event of a fixture's case, on a node with this cgroup version if
// the case does not say one; 0 is a node without cgroup files, but for a case that has some.
// Pods and containers without an id get one.
func FromFixture(c fixture.Case, cgroupVersion int) *Event {
	switch {
	case c.Cgroup != 0:
		cgroupVersion = c.Cgroup
	case cgroupVersion == 0 && len(c.CgroupFiles) > 0:
		cgroupVersion = 2
	}
	node := DefaultNode(cgroupVersion)
	set(crifield.Object{Node: &node}, abi.Node, c.Node)
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
	e.Files, e.Config, e.Grant, e.KV = c.CgroupFiles, c.Config, c.Grant, c.KV
	e.Node, e.Earlier, e.Time, e.Raw = node, c.Earlier, time.Unix(0, c.Time), c.Request
	e.rename(own, a)
	return e
}

// forget takes out the pod of an event that is about none.
func (e *Event) forget(own *podFixture) {
	if m := e.Call.Method; m != nil && m.Carries(e.Call.Request).Pod != nil {
		*m.Carries(e.Call.Request).Pod = nil
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

func newPodFixture(id string, of fixture.Pod) *podFixture {
	v := newPod(id, of.Fields)
	p := &podFixture{id: v.ID, state: v.State}
	p.run = &runtimeapi.RunPodSandboxRequest{Config: v.Config, RuntimeHandler: v.RuntimeHandler}
	p.resize = &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: p.id, Overhead: v.Overhead.Now, Resources: v.Resources.Now}
	for i, container := range of.Containers {
		p.add(fmt.Sprintf("%s-container-%d", p.id, i+1), container)
	}
	return p
}

func (p *podFixture) add(id string, fields fixture.Fields) *containerFixture {
	v := newContainer(id, fields)
	c := &containerFixture{id: v.ID, state: v.State}
	c.create = &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: v.Config, SandboxConfig: p.run.GetConfig()}
	c.update = &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: v.Resources.Now}
	p.containers = append(p.containers, c)
	return c
}
