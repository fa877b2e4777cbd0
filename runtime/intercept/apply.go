package intercept

import (
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// place is somewhere a change lands: the parts of one message or view that
// plugins can change. What it does not have is nil. The functions make what is
// absent, so that a change never finds a nil message.
type place struct {
	object         abi.Object
	labels         *map[string]string
	annotations    *map[string]string
	pod            *runtimeapi.PodSandboxConfig // of a pod or container that is made
	config         *runtimeapi.ContainerConfig  // of a container that is made
	view           *containerView               // of config
	image          func(name string)
	overhead       func() *runtimeapi.LinuxContainerResources
	resources      func() *runtimeapi.LinuxContainerResources
	runtimeHandler func(string)
}

// Apply implements plugin.Subject. Cgroup files are no part of a message: they
// are written by whoever runs the call.
func (e *event) Apply(changes []plugin.Owned) {
	for i := range changes {
		c := &changes[i].Change
		if c.Op == plugin.WriteFile {
			continue
		}
		if c.Object >= abi.FirstHandle {
			e.handles.object(c.Object).apply(c)
		}
		for n := range e.places {
			if p := &e.places[n]; p.object == c.Object {
				p.apply(c)
			}
		}
	}
}

// apply shows a change of another container to the plugins that come later. Only
// resources can be changed there; they are the store's until then.
func (o object) apply(c *plugin.Change) {
	if o.container == nil {
		return
	}
	resources := &runtimeapi.LinuxContainerResources{}
	if o.container.resources != nil {
		resources = proto.CloneOf(o.container.resources)
	}
	setResource(resources, c.Field-abi.Resources, c)
	o.container.resources = resources
}

func (p *place) apply(c *plugin.Change) {
	switch c.Object {
	case abi.Event:
		if p.image != nil {
			p.image(c.Text)
		}
	case abi.Pod:
		p.applyPod(c)
	case abi.Container:
		p.applyContainer(c)
	}
}

func (p *place) applyPod(c *plugin.Change) {
	switch {
	case c.Field == abi.PodRuntimeHandler && p.runtimeHandler != nil:
		p.runtimeHandler(c.Text)
	case c.Field == abi.PodCgroupParent && p.pod != nil:
		setCgroupParent(p.pod, c.Text)
	case c.Field == abi.PodLabels:
		setEntry(p.labels, c)
	case c.Field == abi.PodAnnotations:
		setEntry(p.annotations, c)
	case c.Field >= abi.Resources && p.resources != nil:
		setResource(p.resources(), c.Field-abi.Resources, c)
	case c.Field >= abi.Overhead && p.overhead != nil:
		setResource(p.overhead(), c.Field-abi.Overhead, c)
	}
}

func (p *place) applyContainer(c *plugin.Change) {
	switch {
	case c.Field == abi.ContainerAnnotations:
		setEntry(p.annotations, c)
	case c.Field >= abi.Resources && p.resources != nil:
		setResource(p.resources(), c.Field-abi.Resources, c)
	case c.Field >= abi.Resources && p.config != nil:
		setResource(p.resourcesToBe(), c.Field-abi.Resources, c)
	case p.config != nil:
		setConfig(p.config, c)
	}
}

// resourcesToBe are those of a container that is made.
func (p *place) resourcesToBe() *runtimeapi.LinuxContainerResources {
	if p.config.Linux == nil {
		p.config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	if p.config.Linux.Resources == nil {
		p.config.Linux.Resources = &runtimeapi.LinuxContainerResources{}
	}
	p.view.resources = p.config.Linux.Resources
	return p.view.resources
}

func setEntry(m *map[string]string, c *plugin.Change) {
	if m == nil {
		return
	}
	if c.Op == plugin.DeleteEntry {
		delete(*m, c.Key)
		return
	}
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[c.Key] = c.Text
}

// setImage makes another image of the spec: the digest that came with the old
// one is not the new one's. Who reads it finds what was set, wherever the caller
// had put it.
func setImage(spec *runtimeapi.ImageSpec, name string) {
	if spec.UserSpecifiedImage != "" {
		spec.UserSpecifiedImage = name
	}
	spec.Image, spec.ImageRef = name, ""
}

// setPulled asks for another image. The caller's credentials are for the registry of the
// one that it asked for: another registry does not get them.
func setPulled(r *runtimeapi.PullImageRequest, name string) {
	if r.Image == nil {
		r.Image = &runtimeapi.ImageSpec{}
	}
	if registryOf(name) != registryOf(r.Image.GetImage()) {
		r.Auth = nil
	}
	setImage(r.Image, name)
}

// registryOf tells the host of an image's name as runtimes do: what stands before the
// first slash, if it cannot be part of a path.
func registryOf(image string) string {
	host, _, ok := strings.Cut(image, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" && host == strings.ToLower(host) {
		return "docker.io"
	}
	return host
}
