package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/kubelet"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Setting is what an event is made with that does not say so itself. It is for Pods,
// which say nothing of their node, and for files with more than one event.
type Setting struct {
	Container     string // of a Pod; its first one if ""
	Handler       string // the runtime handler of a Pod; that of its RuntimeClass if ""
	Case          string // of a file of fixtures; the first one of the hook if ""
	CgroupVersion int    // 1 or 2; 0: what a fixture says, else 2
	Systemd       bool   // names cgroups
	Memory        int64  // bytes of the node
	Command       []string
}

func (s Setting) cgroup() int { return cmp.Or(s.CgroupVersion, 2) }

func (s Setting) node() kubelet.Node {
	return kubelet.Node{CgroupVersion: s.cgroup(), Systemd: s.Systemd, Memory: s.Memory}
}

// FromPod returns the event of a Pod's manifest, as kubelet would make it come about.
// All other containers of the Pod run already.
func FromPod(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	p, handler, err := kubelet.Read(file)
	if err != nil {
		return nil, err
	}
	named, err := p.Container(s.Container)
	if err != nil {
		return nil, err
	}
	n, own := s.node(), &podFixture{id: "sandbox-" + p.Metadata.Name}
	own.run = n.RunPodSandbox(p, cmp.Or(s.Handler, handler))
	own.resize = n.UpdatePodSandboxResources(p, own.id)
	var a *containerFixture
	var notes []string
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		made, note := s.container(p, c, own)
		if own.containers = append(own.containers, made); c.Name == named.Name {
			a, notes = made, note
		}
	}
	if a == nil { // a container that runs before the others
		a, notes = s.container(p, named, own)
		own.containers = []*containerFixture{a}
	}
	e := own.event(hook, a, fixture.Fields{"command": slices.Clone(s.Command), "timeout": int64(*p.Spec.GracePeriod)})
	e.Notes, e.Grant, e.PodGroup = notes, abi.DefaultGrant(), n.PodCgroup(p)
	e.Node = DefaultNode(s.cgroup())
	if e.Node.Memory = s.Memory; s.Systemd {
		e.Node.CgroupDriver = "systemd"
	}
	if used := own.run.GetRuntimeHandler(); !slices.Contains(e.Node.RuntimeHandlers, used) {
		e.Node.RuntimeHandlers = append(e.Node.RuntimeHandlers, used)
		slices.Sort(e.Node.RuntimeHandlers)
	}
	return e, nil
}

// digestIn is what a runtime tells of an image that is named with a digest: nothing else is known of an image.
func digestIn(name string) []string {
	repository, digest, ok := strings.Cut(name, "@")
	if !ok {
		return nil
	}
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository = repository[:colon] // the tag does not count
	}
	return []string{repository + "@" + digest}
}

func (s Setting) container(p *kubelet.Pod, c *kubelet.Container, own *podFixture) (a *containerFixture, notes []string) {
	a = &containerFixture{id: own.id + "-" + c.Name}
	var lacking []string
	a.create, lacking = s.node().CreateContainer(p, c, own.id)
	a.update = s.node().UpdateContainerResources(p, c, a.id)
	a.digests = digestIn(c.Image)
	if len(lacking) > 0 {
		notes = []string{fmt.Sprintf("container %s lacks the variables %s, whose values are elsewhere in the cluster", c.Name, strings.Join(lacking, ", "))}
	}
	return a, notes
}
