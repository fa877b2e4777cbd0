package crifield

import (
	"cmp"
	"iter"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Object is what has fields: one of these. The zero Object has none.
type Object struct {
	Event     Event
	Pod       *Pod
	Container *Container
	Node      *Node
}

// Event is one hook of one call, or one apart from calls.
type Event interface {
	Hook() abi.Hook
	Time() time.Time
	// Messages returns the call's request and its response, nil before there is one.
	Messages() (req, resp proto.Message)
}

// Pod is a pod sandbox as plugins see it. What an update can change stands beside
// the config, so that the store's own is never touched.
type Pod struct {
	ID                  string
	RuntimeHandler      string
	State               string                       // "" while it is made
	Config              *runtimeapi.PodSandboxConfig // the request's own, or the store's and then not to be changed
	Overhead, Resources Resources
	Cgroup              string     // the cgroup parent as kubelet named it, if that is known
	Unreported          pods.Parts // see [pods.Pod]
}

// Container is a container as plugins see it, as [Pod] is a pod.
type Container struct {
	ID, PodID   string
	State       string // "" while it is made
	Config      *runtimeapi.ContainerConfig
	Annotations map[string]string
	Resources   Resources
	Unreported  pods.Parts // see [pods.Container]
	// ImageRepoDigests are those of the image that the config names. They are in no message of the container: who reads them
	// asks the runtime first.
	ImageRepoDigests []string
}

// Resources are those of a pod or a container.
type Resources struct {
	Now *runtimeapi.LinuxContainerResources // nil if there are none
	Own bool                                // Now may be changed; if not, the first change makes a copy
	was *runtimeapi.LinuxContainerResources // what the copy was made of
}

// Before returns what Now was before the first change. Of resources that were their own from the beginning that is not known.
func (r *Resources) Before() *runtimeapi.LinuxContainerResources {
	if r.Own {
		return r.was
	}
	return r.Now
}

// Node is what plugins may know of the node. What is not known is zero.
type Node struct {
	CgroupVersion   int // 1 or 2; 0 where the proxy has no cgroup file system
	CgroupDriver    string
	RuntimeName     string
	RuntimeVersion  string
	RuntimeHandlers []string // sorted; the default handler may be ""
	CPUs            int      // online
	Memory          int64    // bytes
	Kernel          string   // its release
}

// Load returns n: it is what is known now, for as long as that does not change.
func (n *Node) Load() *Node { return n }

// NewPod returns the pod of a request that carries its config. The ID may be empty.
func NewPod(id, handler string, config *runtimeapi.PodSandboxConfig) *Pod {
	p := new(Pod)
	p.Init(id, handler, config)
	return p
}

// Init makes the zero Pod what NewPod returns. To copy one takes longer than to fill one in.
func (p *Pod) Init(id, handler string, config *runtimeapi.PodSandboxConfig) {
	linux := config.GetLinux()
	p.ID, p.RuntimeHandler, p.Config, p.Cgroup = id, handler, config, linux.GetCgroupParent()
	p.Overhead.Now, p.Resources.Now = linux.GetOverhead(), linux.GetResources()
}

// PodOf returns a pod of the store.
func PodOf(p pods.Pod) *Pod {
	v := NewPod(p.ID, p.RuntimeHandler, p.Config)
	v.State, v.Unreported = PodState(p.State), p.Unreported
	v.Cgroup = cmp.Or(p.Requested.GetLinux().GetCgroupParent(), v.Cgroup, p.CgroupParent)
	return v
}

// Parent is the pod's cgroup parent, with what plugins changed.
func (p *Pod) Parent() string { return cmp.Or(p.Config.GetLinux().GetCgroupParent(), p.Cgroup) }

// ContainerOf returns a container of the store.
func ContainerOf(c pods.Container) *Container {
	return &Container{
		ID: c.ID, PodID: c.PodID, State: ContainerState(c.State), Config: c.Config,
		Annotations: c.Config.GetAnnotations(), Resources: Resources{Now: c.Config.GetLinux().GetResources()}, Unreported: c.Unreported,
	}
}

// WriteConfig puts annotations and resources into the container's config, which is its own.
func (c *Container) WriteConfig() {
	c.Config.Annotations = c.Annotations
	if c.Resources.Now == c.Config.GetLinux().GetResources() {
		return
	}
	if c.Config.Linux == nil {
		c.Config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	c.Config.Linux.Resources = c.Resources.Now
}

// PodState returns CRI's name of a state without the beginning that all of them have.
func PodState(s runtimeapi.PodSandboxState) string { return podStates.of(int32(s)) }

// ContainerState is the same for a container.
func ContainerState(s runtimeapi.ContainerState) string { return containerStates.of(int32(s)) }

// names are those of an enumeration's values as plugins have them.
type names map[int32]string

var (
	podStates       = namesOf(runtimeapi.PodSandboxState_name, "SANDBOX_")
	containerStates = namesOf(runtimeapi.ContainerState_name, "CONTAINER_")
	namespaceModes  = namesOf(runtimeapi.NamespaceMode_name, "")
	protocols       = namesOf(runtimeapi.Protocol_name, "")
	propagations    = namesOf(runtimeapi.MountPropagation_name, "PROPAGATION_")
)

func namesOf(all map[int32]string, prefix string) names {
	shown := names{}
	for value, name := range all {
		shown[value] = strings.ToLower(strings.TrimPrefix(name, prefix))
	}
	return shown
}

// of returns a value's name, of a value that came later than this build its number.
func (n names) of(value int32) string {
	if name, ok := n[value]; ok {
		return name
	}
	return strconv.Itoa(int(value))
}

// value returns the value of a name, CRI's default for a name that there is not.
func (n names) value(name string) int32 {
	for value, of := range n {
		if of == name {
			return value
		}
	}
	return 0
}

// row returns the row of a field; nil if the object has no such field.
func (o Object) row(f abi.Field) *row {
	var rows *[plugin.MaxField]row
	switch {
	case o.Container != nil:
		rows = &table[abi.Container]
	case o.Pod != nil:
		rows = &table[abi.Pod]
	case o.Node != nil:
		rows = &table[abi.Node]
	case o.Event != nil:
		rows = &table[abi.Event]
	}
	if rows == nil || uint(f) >= plugin.MaxField {
		return nil
	}
	return &rows[f]
}

// Int64 returns a field of type abi.Int64. The error is abi.NotFound if the object has
// no value for it, and abi.Unsupported if nobody told the value.
func (o Object) Int64(f abi.Field) (int64, abi.Errno) {
	r := o.row(f)
	if r == nil || r.int64 == nil {
		return 0, abi.NotFound
	}
	n, ok := r.int64(o)
	return answer(o, r, n, ok, n == 0)
}

// Text returns a field of type abi.String. Errors are those of [Object.Int64].
func (o Object) Text(f abi.Field) (string, abi.Errno) {
	r := o.row(f)
	if r == nil || r.text == nil {
		return "", abi.NotFound
	}
	text, ok := r.text(o)
	return answer(o, r, text, ok, text == "")
}

// List returns a field of type abi.List or abi.Set. Errors are those of [Object.Int64],
// and abi.TooLarge for more than abi.MaxEntries elements.
func (o Object) List(f abi.Field) ([]string, abi.Errno) {
	r := o.row(f)
	switch {
	case r == nil || r.list == nil:
		return nil, abi.NotFound
	case r.size != nil && r.size(o) > abi.MaxEntries:
		return nil, abi.TooLarge
	}
	list, ok := r.list(o)
	return answer(o, r, list, ok, len(list) == 0)
}

// Entries returns a field of type abi.Map, in an order that is always the same. Errors
// are those of [Object.List].
func (o Object) Entries(f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	r := o.row(f)
	if r == nil || r.entries == nil {
		return nil, abi.NotFound
	}
	size := r.size(o)
	if size > abi.MaxEntries {
		return nil, abi.TooLarge
	}
	return answer(o, r, r.entries(o), true, size == 0)
}

// Lookup returns one entry of a field of type abi.Map, of a name that is there twice the
// last, which is the one that counts in an environment. Errors are those of [Object.Int64].
func (o Object) Lookup(f abi.Field, key string) (string, abi.Errno) {
	r := o.row(f)
	if r == nil || r.lookup == nil {
		return "", abi.NotFound
	}
	v, ok := r.lookup(o, key)
	return answer(o, r, v, ok, !ok)
}

func answer[T any](o Object, r *row, v T, ok, empty bool) (T, abi.Errno) {
	var unreported pods.Parts // that the backend left out: if they are zero or empty, their value is not known
	switch {
	case o.Container != nil:
		unreported = o.Container.Unreported
	case o.Pod != nil:
		unreported = o.Pod.Unreported
	}
	var none T
	switch {
	case empty && unreported&r.part != 0:
		return none, abi.Unsupported
	case !ok:
		return none, abi.NotFound
	}
	return v, abi.OK
}

// Set makes a change that was checked, of a field that the object has. It changes the messages of
// the object, and of [Resources] that are not its own a copy.
func (o Object) Set(c *plugin.Change) {
	if r := o.row(c.Field); r != nil && r.set != nil {
		r.set(o, c)
	}
}
