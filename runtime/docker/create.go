package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// create serves ContainerCreate, which is RunPodSandbox for a sandbox.
func (c *call) create() {
	if !c.read() {
		return
	}
	of := new(container)
	if err := decode(c.body, of); err != nil {
		if c.unseen == nil {
			c.unseen = fmt.Errorf("its body cannot be decoded: %w", err)
		}
		alone := new(struct{ Labels map[string]string })
		if decode(c.body, alone) != nil { // it may be of any kind
			c.hook(making(standalone)...)
			return
		}
		of.Labels = alone.Labels // the error may have come before them
	}
	name := c.r.URL.Query().Get("name")
	k := kindOf(of.Labels, c.opts.Client.all)
	if c.unseen == nil {
		c.unseen = hidden(c.body)
	}
	switch {
	case k == notOurs:
		c.pass()
	case c.unseen != nil:
		c.hook(making(k)...)
	case k == ofSandbox:
		pod, _ := c.podStage(name, of, k)
		c.hook(pod)
	case k == ofPod: // the pod is as it was made, but for the cgroup parent, which dockershim sends again
		pod := &runtimeapi.PodSandboxConfig{Metadata: namesOf(name, of.Labels, ofPod).pod}
		id := of.Labels[sandboxIDLabel]
		ctx, cancel := context.WithTimeout(c.r.Context(), readTime)
		known, err := c.opts.Store.ReadPod(ctx, c.opts.Client, id)
		cancel()
		if err == nil {
			pod = proto.CloneOf(known.Config)
		}
		if pod.Linux == nil {
			pod.Linux = &runtimeapi.LinuxPodSandboxConfig{}
		}
		pod.Linux.CgroupParent = parentOf(of.HostConfig.CgroupParent)
		made, _ := c.containerStage(name, of, ofPod, id, pod)
		c.hook(made)
	default:
		c.standalone(name, of)
	}
}

// podStage makes RunPodSandbox of the request.
func (c *call) podStage(name string, of *container, k kind) (stage, *runtimeapi.RunPodSandboxRequest) {
	handler := c.opts.Client.handlerOf(c.r.Context(), of.HostConfig.Runtime)
	request := &runtimeapi.RunPodSandboxRequest{Config: podConfig(name, of, k), RuntimeHandler: handler}
	return stage{
		request: request,
		changed: func(to proto.Message, e *changes) { e.pod(of, k, request, to.(*runtimeapi.RunPodSandboxRequest)) },
		answer:  func(r *recorder) proto.Message { return &runtimeapi.RunPodSandboxResponse{PodSandboxId: r.madeID()} },
	}, request
}

// containerStage makes CreateContainer of the request.
func (c *call) containerStage(
	name string, of *container, k kind, podID string, pod *runtimeapi.PodSandboxConfig,
) (stage, *runtimeapi.CreateContainerRequest) {
	request := &runtimeapi.CreateContainerRequest{PodSandboxId: podID, SandboxConfig: pod, Config: containerConfig(name, of, k)}
	return stage{
		request: request,
		changed: func(to proto.Message, e *changes) {
			e.container(of, k, request, to.(*runtimeapi.CreateContainerRequest))
		},
		answer: func(r *recorder) proto.Message { return &runtimeapi.CreateContainerResponse{ContainerId: r.madeID()} },
	}, request
}

// standalone serves a container that Kubernetes did not make: it is a pod and its container. Until
// the store reads the pod from Docker again, its ID is another one than the container's, since
// that is not known before the container is made.
func (c *call) standalone(name string, of *container) {
	id := rand.Text()
	if name == "" { // Docker makes one up
		name = "unnamed-" + id
	}
	pod, run := c.podStage(name, of, standalone)
	inner, create := c.containerStage(name, of, standalone, id, run.GetConfig())
	changed := pod.changed
	pod.changed = func(to proto.Message, e *changes) {
		changed(to, e)
		create.SandboxConfig = to.(*runtimeapi.RunPodSandboxRequest).GetConfig()
	}
	response := &runtimeapi.RunPodSandboxResponse{PodSandboxId: id}
	pod.answer = func(*recorder) proto.Message { return response }
	// The hooks of the container find its pod in the store.
	pod.expect = func(sent proto.Message) { c.opts.Store.Observe(nil, sent, response) }
	pod.failed = func() { c.opts.Store.Observe(nil, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}, nil) }
	c.hook(pod, inner)
}

// readTime is how long the store may take to read a pod from Docker.
const readTime = 2 * time.Second

// madeID is the ID in an answer of ContainerCreate.
func (r *recorder) madeID() string {
	var made struct {
		ID string `json:"Id"`
	}
	if decode(r.body.Bytes(), &made) != nil {
		return ""
	}
	return made.ID
}

// update serves ContainerUpdate.
func (c *call) update() {
	if !c.read() {
		return
	}
	of := new(resources)
	if err := decode(c.body, of); err != nil && c.unseen == nil {
		c.unseen = fmt.Errorf("its body cannot be decoded: %w", err)
	}
	_, id, k := c.identify()
	request := &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id}
	switch {
	case k != ofPod && k != standalone:
		c.pass()
		return
	case c.unseen != nil:
		c.hook(stage{request: request})
		return
	}
	has := sync.OnceValue(func() *resources { // empty if Docker does not tell
		ctx, cancel := context.WithTimeout(c.r.Context(), readTime)
		defer cancel()
		found, _, err := c.opts.Client.inspect(ctx, id)
		if err != nil {
			return new(resources)
		}
		return &found.HostConfig.resources
	})
	onlyNano := of.NanoCpus > 0 && of.CpuQuota == 0 && of.CpuPeriod == 0
	// The container may have a quota by a plugin. Docker takes no NanoCpus then: the update sets period and quota.
	if onlyNano && k == standalone && max(has().CpuQuota, has().CpuPeriod) > 0 {
		as := of.cri()
		e := newChanges(c.body)
		e.set("NanoCpus", 0)
		e.set("CpuPeriod", as.GetCpuPeriod())
		e.set("CpuQuota", as.GetCpuQuota())
		if e.err == nil {
			of.NanoCpus, of.CpuPeriod, of.CpuQuota = 0, as.GetCpuPeriod(), as.GetCpuQuota()
			c.setBody(e.text())
		}
	}
	request.Linux = of.cri()
	c.hook(stage{request: request, changed: func(to proto.Message, e *changes) {
		e.cpus = func() int64 { return c.opts.Client.info(c.r.Context()).NCPU }
		had := *has() // and what the update names
		had.NanoCpus = cmp.Or(of.NanoCpus, had.NanoCpus)
		if of.MemorySwap != 0 {
			had.Memory, had.MemorySwap = cmp.Or(of.Memory, had.Memory), of.MemorySwap
		}
		e.update(&had, request, to.(*runtimeapi.UpdateContainerResourcesRequest))
	}})
}
