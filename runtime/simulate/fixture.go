package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// FromFixture returns the event of a fixture's case, on a node with this cgroup version if
// the case does not say one; 0 is a node without cgroup files, but for a case that has some.
func FromFixture(c fixture.Case, cgroupVersion int) (_ *Event, err error) {
	if c.CgroupVersion() == 0 && cgroupVersion > 0 {
		c.Cgroup = fmt.Sprint("v", cgroupVersion)
	}
	about := c.Event
	c = c.Complete()
	if err := checkStates(c); err != nil {
		return nil, err
	}
	own := newPodFixture(fixture.Pod{Fields: c.Pod, Containers: c.Siblings})
	var a *containerFixture
	if c.Container != nil {
		a = own.add(c.Container)
	}
	e := own.event(c.Hook, a, about)
	for _, name := range slices.Sorted(maps.Keys(about)) { // the call has to have each field of the event as the case says it
		var got any
		errno := abi.NotFound
		info, _ := abi.FieldByName(abi.Event, name)
		switch o := e.Call.object(); {
		case e.Call.Method == nil || info.Field == abi.EventHook || info.Field == abi.EventTime:
		case info.Type == abi.Int64:
			got, errno = o.Int64(info.Field)
		case info.Type == abi.String:
			got, errno = o.Text(info.Field)
		default:
			got, errno = o.List(info.Field)
		}
		if want := about.Value(info); errno != abi.OK || fmt.Sprint(got) != fmt.Sprint(want) {
			return nil, fmt.Errorf("event.%s: hook %v has no event with the value %v", name, c.Hook, want)
		}
	}
	for _, p := range c.Store {
		other := newPodFixture(p)
		e.Before = append(other.earlier(other.containers), e.Before...)
		other.addDigests(e)
	}
	if c.Pod == nil { // it is about none
		if m := e.Call.Method; m != nil && m.Carries(e.Call.Request).Pod != nil {
			*m.Carries(e.Call.Request).Pod = nil
		}
		e.Before = slices.DeleteFunc(e.Before, func(c Call) bool { return c.Request == own.run })
	}
	e.Fixture = true
	e.Config, e.Grant, e.KV, e.Files = c.Config, c.Grant, c.KV, map[string]map[string]string{}
	for name, of := range c.CgroupFiles { // those of the event's own objects get their ids
		switch {
		case name == abi.Pod.String():
			name = own.id
		case name == abi.Container.String() && a != nil:
			name = a.id
		}
		e.Files[name] = of
	}
	e.Node, e.Earlier, e.Time, e.Raw = newNode(c.Node), c.Earlier, time.Unix(0, c.Time), c.Request
	if c.Previous != nil {
		e.Previous, err = FromFixture(*c.Previous, cgroupVersion)
	}
	return e, err
}

// checkStates returns an error for states that no call brings about.
func checkStates(c fixture.Case) error {
	pods, containers := []fixture.Fields{c.Pod}, append([]fixture.Fields{c.Container}, c.Siblings...)
	for _, p := range c.Store {
		pods, containers = append(pods, p.Fields), append(containers, p.Containers...)
	}
	return errors.Join(hasStates(abi.Pod, pods, "ready", "notready"), hasStates(abi.Container, containers, "created", "running", "exited"))
}

func hasStates(kind abi.Object, objects []fixture.Fields, states ...string) error {
	for _, fields := range objects {
		if state, _ := fields["state"].(string); state != "" && !slices.Contains(states, state) {
			return fmt.Errorf("%v.state: %q is none that a call brings about; these are %s", kind, state, strings.Join(states, ", "))
		}
	}
	return nil
}

func newPodFixture(of fixture.Pod) *podFixture {
	v := &crifield.Pod{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{},
	}}
	set(crifield.Object{Pod: v}, abi.Pod, of.Fields)
	v.Config.Linux.Overhead, v.Config.Linux.Resources = v.Overhead.Now, v.Resources.Now
	p := &podFixture{id: v.ID, state: v.State}
	p.run = &runtimeapi.RunPodSandboxRequest{Config: v.Config, RuntimeHandler: v.RuntimeHandler}
	p.resize = &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: p.id, Overhead: v.Overhead.Now, Resources: v.Resources.Now}
	for _, container := range of.Containers {
		p.add(container)
	}
	return p
}

func (p *podFixture) add(fields fixture.Fields) *containerFixture {
	v := &crifield.Container{Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{},
		Linux:    &runtimeapi.LinuxContainerConfig{},
	}}
	set(crifield.Object{Container: v}, abi.Container, fields)
	v.Config.Annotations, v.Config.Linux.Resources = v.Annotations, v.Resources.Now
	if user, given := fields["run_as_user"].(int64); given { // which a name has replaced, if there is one too
		v.Config.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: user}
	}
	c := &containerFixture{id: v.ID, state: v.State, digests: v.ImageRepoDigests}
	c.create = &runtimeapi.CreateContainerRequest{PodSandboxId: p.id, Config: v.Config, SandboxConfig: p.run.GetConfig()}
	c.update = &runtimeapi.UpdateContainerResourcesRequest{ContainerId: c.id, Linux: v.Resources.Now}
	p.containers = append(p.containers, c)
	return c
}
