package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// setFields are what plugins set: CRI can bring back the numbers, the cpuset if kubelet has set one, and
// no entry of unified.
var setFields = []string{"cpu_quota", "cpu_shares", "memory_limit_in_bytes", "unified[memory.high]", "cpuset_cpus"}

func set(adj *plugin.Adjustment, o abi.Object, field, value string) error {
	n, _ := strconv.ParseInt(value, 10, 64)
	switch field {
	case "cpu_quota":
		return adj.SetInt64(o, abi.Resources+abi.CPUQuota, n)
	case "cpu_shares":
		return adj.SetInt64(o, abi.Resources+abi.CPUShares, n)
	case "memory_limit_in_bytes":
		return adj.SetInt64(o, abi.Resources+abi.MemoryLimit, n)
	case "cpuset_cpus":
		return adj.SetText(o, abi.Resources+abi.CpusetCpus, value)
	}
	return adj.SetEntry(o, abi.Resources+abi.Unified, "memory.high", value)
}

// fieldNumber and fieldKey are what a withdrawal of a target names.
func fieldNumber(kind, name string) abi.Field {
	if kind == "file" {
		return 0
	}
	return map[string]abi.Field{
		"cpu_quota": abi.Resources + abi.CPUQuota, "cpu_shares": abi.Resources + abi.CPUShares,
		"memory_limit_in_bytes": abi.Resources + abi.MemoryLimit, "cpuset_cpus": abi.Resources + abi.CpusetCpus,
		"unified[memory.high]": abi.Resources + abi.Unified,
	}[name]
}

func fieldKey(kind, name string) string {
	switch {
	case kind == "file":
		return name
	case name == "unified[memory.high]":
		return "memory.high"
	}
	return ""
}

func request(values map[string]string) *runtimeapi.LinuxContainerResources {
	n := func(field string) int64 { n, _ := strconv.ParseInt(values[field], 10, 64); return n }
	r := &runtimeapi.LinuxContainerResources{
		CpuQuota: n("cpu_quota"), CpuShares: n("cpu_shares"), MemoryLimitInBytes: n("memory_limit_in_bytes"), CpusetCpus: values["cpuset_cpus"],
	}
	if r.CpuQuota != 0 {
		r.CpuPeriod = 100_000
	}
	if high, ok := values["unified[memory.high]"]; ok {
		r.Unified = map[string]string{"memory.high": high}
	}
	return r
}

// values is the reverse of request.
func values(r *runtimeapi.LinuxContainerResources) map[string]string {
	all := map[string]string{}
	numbers := map[string]int64{"cpu_quota": r.GetCpuQuota(), "cpu_shares": r.GetCpuShares(), "memory_limit_in_bytes": r.GetMemoryLimitInBytes()}
	for f, n := range numbers {
		if n != 0 {
			all[f] = strconv.FormatInt(n, 10)
		}
	}
	if cpus := r.GetCpusetCpus(); cpus != "" {
		all["cpuset_cpus"] = cpus
	}
	for key, value := range r.GetUnified() {
		all["unified["+key+"]"] = value
	}
	return all
}

// modelRuntime is a container runtime and the cgroups of its containers, and what the model knows of them.
type modelRuntime struct {
	enforce.Backend
	mu         sync.Mutex
	cgroups    string // the directory
	whole      bool   // an update has all files written that a container's resources have, as with containerd
	sandboxes  map[string]*modelPod
	containers map[string]*modelContainer
	refuses    error           // what the proxy's own updates are answered
	dead       bool            // the proxy was killed: what it does has no effect
	point      func(at string) // where the proxy may be killed
	slow       func(*modelPod, *modelContainer, bool)
	wrong      []string      // what the proxy has done that it must not
	gate       chan struct{} // closed when it takes updates of the proxy's own; nil: it does
}

// modelPod is a pod of kubelet's.
type modelPod struct {
	modelObject
	uid        string
	sandbox    string // ID; "": there is none
	attempt    uint32
	containers map[string]*modelContainer // the newest of each name
	attempts   map[string]uint32          // of the next one
}

// modelContainer is a container.
type modelContainer struct {
	modelObject
	id, name string
	pod      *modelPod
	config   *runtimeapi.ContainerConfig // as it was created
	has      map[string]string           // its resources, into which the runtime merges updates
	state    runtimeapi.ContainerState

	kubelet map[string]string          // the resources that kubelet wants
	former  map[string]map[string]bool // by field: values of plugins that may stay, as CRI cannot bring back kubelet's
	attempts,
	changes int // of the proxy's own updates and of their reasons, since the step began
	used      int  // memory, in bytes
	unsettled bool // before the step something was yet to be sent
}

// modelObject is what the model knows of the cgroup files and wishes of a pod or container.
type modelObject struct {
	group   string                 // beneath the directory
	foreign map[string]string      // by file: what anybody but the proxy wrote last
	wishes  map[string][]modelWish // by target: "field cpu_quota", "file pids.max"
}

type modelWish struct {
	plugin, value, generation string
	tick                      bool // it was asked for in Tick
}

func (o *modelObject) path(r *modelRuntime, file string) string {
	return filepath.Join(r.cgroups, o.group, file)
}

// write is a write by anybody but the proxy.
func (o *modelObject) write(r *modelRuntime, file, text string) {
	o.foreign[file] = text
	check(os.WriteFile(o.path(r, file), []byte(text+"\n"), 0o644))
}

func (o *modelObject) read(r *modelRuntime, file string) string {
	text, err := os.ReadFile(o.path(r, file))
	check(err)
	return strings.TrimSpace(string(text))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func number(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return 1 << 40 // "max"
}

// use sets the memory in use, of which the kernel lets a container have no more than its limit.
func (c *modelContainer) use(r *modelRuntime, n int) {
	c.used = min(n, number(c.read(r, "memory.max"))) / page * page
	check(os.WriteFile(c.path(r, "memory.current"), []byte(strconv.Itoa(c.used)+"\n"), 0o644))
}

// begin makes the container's cgroup.
func (c *modelContainer) begin(r *modelRuntime) {
	c.state = runtimeapi.ContainerState_CONTAINER_RUNNING
	check(os.MkdirAll(filepath.Join(r.cgroups, c.group), 0o755))
	for file, text := range map[string]string{"pids.max": "max", "memory.low": "0", "cpu.max": "max 100000", "memory.max": "max"} {
		c.write(r, file, text)
	}
	c.apply(r, c.has)
	c.use(r, 0)
}

// end is its end, and that of its processes.
func (c *modelContainer) end(r *modelRuntime) {
	if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		check(os.RemoveAll(filepath.Join(r.cgroups, c.group)))
	}
	c.state = runtimeapi.ContainerState_CONTAINER_EXITED
	clear(c.wishes) // nobody needs to remember them
}

// apply merges an update.
func (c *modelContainer) apply(r *modelRuntime, named map[string]string) {
	maps.Copy(c.has, named)
	if r.whole {
		named = c.has
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	if quota, ok := named["cpu_quota"]; ok {
		c.write(r, "cpu.max", quota+" 100000")
	}
	if limit, ok := named["memory_limit_in_bytes"]; ok {
		c.write(r, "memory.max", limit)
		c.use(r, c.used)
	}
}

var errRefused = status.Error(codes.Unknown, "the runtime refuses that")

// UpdateContainerResources is one of the proxy's own.
func (r *modelRuntime) UpdateContainerResources(
	_ context.Context, req *runtimeapi.UpdateContainerResourcesRequest, _ ...grpc.CallOption,
) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	r.mu.Lock()
	gate := r.gate
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
	r.point("before an update of the proxy's own")
	if c := r.container(req.GetContainerId()); c != nil {
		r.slow(c.pod, c, true)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.GetContainerId()]
	switch {
	case r.dead:
		return nil, errDown
	case !ok:
		return nil, status.Error(codes.NotFound, "no such container")
	case c.state == runtimeapi.ContainerState_CONTAINER_EXITED:
		return nil, status.Error(codes.Unknown, "the container is not running")
	}
	c.attempts++
	if r.refuses != nil {
		return nil, r.refuses
	}
	named := values(req.GetLinux())
	limit, ok := named["memory_limit_in_bytes"]
	if ok && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING && number(limit) < c.used {
		wrong := fmt.Sprintf("an update of the proxy's own sets the memory limit of %s to %s, below the %d bytes in use", c.id, limit, c.used)
		r.wrong = append(r.wrong, wrong)
	}
	c.apply(r, named)
	r.mu.Unlock()
	r.slow(c.pod, c, true)
	r.point("after an update of the proxy's own")
	r.mu.Lock()
	if r.dead {
		return nil, errDown
	}
	return &runtimeapi.UpdateContainerResourcesResponse{}, nil
}

// shut has updates of the proxy's own wait until open is called: while plugins are told of pods. A proxy that is killed in one
// has then saved all that they were told.
func (r *modelRuntime) shut() (open func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = gate
	return func() {
		close(gate)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gate = nil
	}
}

// ListPodSandbox and the others are what the store asks.
func (r *modelRuntime) ListPodSandbox(
	context.Context, *runtimeapi.ListPodSandboxRequest, ...grpc.CallOption,
) (*runtimeapi.ListPodSandboxResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &runtimeapi.ListPodSandboxResponse{}
	for id, p := range r.sandboxes {
		list.Items = append(list.Items, &runtimeapi.PodSandbox{Id: id, Metadata: p.config().GetMetadata()})
	}
	return list, nil
}

func (r *modelRuntime) ListContainers(
	context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption,
) (*runtimeapi.ListContainersResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &runtimeapi.ListContainersResponse{}
	for id, c := range r.containers {
		list.Containers = append(list.Containers, &runtimeapi.Container{
			Id: id, PodSandboxId: c.pod.sandbox, Metadata: c.config.GetMetadata(), State: c.state,
		})
	}
	return list, nil
}

func (r *modelRuntime) PodSandboxStatus(
	_ context.Context, req *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.sandboxes[req.GetPodSandboxId()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such sandbox")
	}
	info, err := json.Marshal(map[string]any{"config": p.config()})
	check(err)
	return &runtimeapi.PodSandboxStatusResponse{
		Status: &runtimeapi.PodSandboxStatus{Id: req.GetPodSandboxId(), Metadata: p.config().GetMetadata()},
		Info:   map[string]string{"info": string(info)},
	}, nil
}

func (r *modelRuntime) ContainerStatus(
	_ context.Context, req *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.containers[req.GetContainerId()]
	if !ok {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	info, err := json.Marshal(map[string]any{"config": c.config, "sandboxID": c.pod.sandbox})
	check(err)
	return &runtimeapi.ContainerStatusResponse{
		Status: &runtimeapi.ContainerStatus{
			Id: c.id, Metadata: c.config.GetMetadata(), State: c.state, Resources: &runtimeapi.ContainerResources{Linux: request(c.has)},
		},
		Info: map[string]string{"info": string(info)},
	}, nil
}

func (p *modelPod) config() *runtimeapi.PodSandboxConfig {
	return &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: p.uid, Namespace: "prod", Uid: p.uid, Attempt: p.attempt},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{CgroupParent: "/" + p.group},
	}
}

// serve answers a call of kubelet's, whose request is as the proxy sends it.
func (r *modelRuntime) serve(p *modelPod, c *modelContainer, req any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return errDown
	}
	switch req := req.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		r.sandboxes[p.sandbox] = p
	case *runtimeapi.CreateContainerRequest:
		c.config, c.has = req.GetConfig(), values(req.GetConfig().GetLinux().GetResources())
		c.state = runtimeapi.ContainerState_CONTAINER_CREATED
		r.containers[c.id], p.containers[c.name] = c, c
	case *runtimeapi.StartContainerRequest:
		if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
			return errRefused
		}
		c.begin(r)
	case *runtimeapi.UpdateContainerResourcesRequest:
		if c.state == runtimeapi.ContainerState_CONTAINER_EXITED {
			return errRefused
		}
		c.apply(r, values(req.GetLinux()))
	case *runtimeapi.StopContainerRequest:
		c.end(r)
	case *runtimeapi.RemoveContainerRequest:
		c.end(r)
		delete(r.containers, c.id)
	case *runtimeapi.StopPodSandboxRequest:
		for _, c := range r.of(p) {
			c.end(r)
		}
	case *runtimeapi.RemovePodSandboxRequest:
		for _, c := range r.of(p) {
			c.end(r)
			delete(r.containers, c.id)
		}
		delete(r.sandboxes, p.sandbox)
	default:
		return errors.New("the model has no such call")
	}
	return nil
}

// of returns the containers of a pod, by their IDs.
func (r *modelRuntime) of(p *modelPod) (all []*modelContainer) {
	for _, id := range slices.Sorted(maps.Keys(r.containers)) {
		if c := r.containers[id]; c.pod == p {
			all = append(all, c)
		}
	}
	return all
}
