package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/wasmproxy/wasmproxy/abi"
)

// host is the NRI plugin. Guests are called in their order.
type host struct {
	guests  []*guest
	unified bool
	pending pending
}

// serveNRI loads modules with the default grant, and serves them until NRI goes away.
func serveNRI(ctx context.Context, socket string, hooks, modules []string) error {
	_, err := os.Stat("/sys/fs/cgroup/cgroup.controllers")
	h := &host{unified: err == nil, pending: pending{files: map[string]map[string]string{}}}
	for _, file := range modules {
		module, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		g, err := load(ctx, module, "", abi.DefaultGrant(), hooks...)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		defer g.close(ctx)
		h.guests = append(h.guests, g)
	}
	options := []stub.Option{stub.WithPluginName("wasm"), stub.WithPluginIdx("50")}
	if socket != "" {
		options = append(options, stub.WithSocketPath(socket))
	}
	s, err := stub.New(h, options...)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// tell calls each guest that wants the hook, and returns all changes. The error is a refusal; a guest that fails is left out.
func (h *host) tell(ctx context.Context, hook abi.Hook, pod *api.PodSandbox, c *api.Container) (all []change, err error) {
	earlier := map[string]string{}
	for _, g := range h.guests {
		if !g.manifest.HookSet().Has(hook) {
			continue
		}
		e := &event{hook: hook, time: time.Now().UnixNano(), objects: objects(hook, pod, c), earlier: earlier, unified: h.unified}
		if err := g.call(ctx, e); err != nil {
			log.Printf("%s: %v: %v", g.manifest.Name, hook, err)
			continue
		}
		if e.refused {
			return nil, fmt.Errorf("plugin %s refuses the call: %s", g.manifest.Name, e.reason)
		}
		for _, line := range e.log {
			log.Printf("%s: %v: %s", g.manifest.Name, hook, line)
		}
		for _, c := range e.changes {
			earlier[c.target] = text(c.value)
		}
		all = append(all, e.changes...)
	}
	return all, nil
}

// objects are those of an event. What NRI does not tell is UNSUPPORTED.
func objects(hook abi.Hook, pod *api.PodSandbox, c *api.Container) map[abi.Object]fields {
	all := map[abi.Object]fields{
		abi.Event: {"hook": number(int64(hook)), "time": number(time.Now().UnixNano()), "method": hook.Info().Method},
		abi.Node:  unknown(abi.Node),
	}
	p := unknown(abi.Pod)
	p["id"], p["name"], p["namespace"], p["uid"] = pod.GetId(), pod.GetName(), pod.GetNamespace(), pod.GetUid()
	p["runtime_handler"], p["cgroup_parent"] = pod.GetRuntimeHandler(), pod.GetLinux().GetCgroupParent()
	p["labels"], p["annotations"] = stringMap(pod.GetLabels()), stringMap(pod.GetAnnotations())
	if all[abi.Pod] = p; c == nil {
		return all
	}
	f := unknown(abi.Container)
	f["id"], f["name"], f["pod_sandbox_id"] = c.GetId(), c.GetName(), c.GetPodSandboxId()
	if hook == abi.PreCreateContainer { // the runtime has chosen an id, and made nothing
		f["id"] = ""
	}
	f["labels"], f["annotations"] = stringMap(c.GetLabels()), stringMap(c.GetAnnotations())
	env := map[string]any{}
	for _, variable := range c.GetEnv() {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	f["env"] = env
	addResources(f, c.GetLinux().GetResources())
	all[abi.Container] = f
	return all
}

func unknown(o abi.Object) fields {
	f := fields{}
	for _, info := range abi.Fields {
		if info.Object == o {
			f[info.Name] = abi.Unsupported
		}
	}
	return f
}

func addResources(f fields, r *api.LinuxResources) {
	cpu, memory := r.GetCpu(), r.GetMemory()
	f["resources.cpu_quota"], f["resources.cpu_period"] = number(cpu.GetQuota().GetValue()), number(int64(cpu.GetPeriod().GetValue()))
	f["resources.cpu_shares"] = number(int64(cpu.GetShares().GetValue()))
	f["resources.cpuset_cpus"], f["resources.cpuset_mems"] = cpu.GetCpus(), cpu.GetMems()
	f["resources.memory_limit_in_bytes"] = number(memory.GetLimit().GetValue())
	f["resources.memory_swap_limit_in_bytes"] = number(memory.GetSwap().GetValue())
	f["resources.unified"] = stringMap(r.GetUnified())
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func stringMap(m map[string]string) map[string]any {
	all := map[string]any{}
	for key, value := range m {
		all[key] = value
	}
	return all
}

// resources are what an adjustment and an update have in common.
type resources interface {
	SetLinuxCPUQuota(int64)
	SetLinuxCPUPeriod(int64)
	SetLinuxCPUShares(uint64)
	SetLinuxCPUSetCPUs(string)
	SetLinuxCPUSetMems(string)
	SetLinuxMemoryLimit(int64)
	SetLinuxMemorySwap(int64)
	AddLinuxHugepageLimit(string, uint64)
	AddLinuxUnified(string, string)
}

// setResource makes a change of a resource; it reports whether it is one.
func setResource(r resources, c change) bool {
	s, _ := c.value.(string)
	var n int64
	if value, ok := c.value.(json.Number); ok {
		n, _ = value.Int64() // which the guest gave as i64
	}
	switch c.info.Name {
	case "resources.cpu_quota":
		r.SetLinuxCPUQuota(n)
	case "resources.cpu_period":
		r.SetLinuxCPUPeriod(n)
	case "resources.cpu_shares":
		r.SetLinuxCPUShares(uint64(n))
	case "resources.cpuset_cpus":
		r.SetLinuxCPUSetCPUs(s)
	case "resources.cpuset_mems":
		r.SetLinuxCPUSetMems(s)
	case "resources.memory_limit_in_bytes":
		r.SetLinuxMemoryLimit(n)
	case "resources.memory_swap_limit_in_bytes":
		r.SetLinuxMemorySwap(n)
	case "resources.hugepage_limits":
		if bytes, err := strconv.ParseUint(s, 10, 64); err == nil {
			r.AddLinuxHugepageLimit(c.key, bytes)
		}
	case "resources.unified":
		if c.value != nil {
			r.AddLinuxUnified(c.key, s)
		}
	default:
		return false
	}
	return true
}

// adjust makes a change of a container that is created.
func adjust(a *api.ContainerAdjustment, c change) error {
	s, _ := c.value.(string)
	switch deleted := c.value == nil; {
	case setResource(a, c):
	case c.info.Name == "resources.oom_score_adj":
		n, _ := c.value.(json.Number).Int64()
		score := int(n)
		a.SetLinuxOomScoreAdj(&score)
	case c.info.Name == "annotations" && deleted:
		a.RemoveAnnotation(c.key)
	case c.info.Name == "annotations":
		a.AddAnnotation(c.key, s)
	case c.info.Name == "env" && deleted:
		a.RemoveEnv(c.key)
	case c.info.Name == "env":
		a.AddEnv(c.key, s)
	case c.info.Name == "mounts" && deleted:
		a.RemoveMount(c.key)
	case c.info.Name == "mounts":
		a.AddMount(mount(c.value.(map[string]any)))
	case c.info.Name == "devices" && deleted:
		a.RemoveDevice(c.key)
	case c.info.Name == "devices":
		d, err := device(c.value.(map[string]any))
		if err != nil {
			return err
		}
		a.AddDevice(d)
	case c.info.Name == "cdi_devices" && !deleted:
		a.AddCDIDevice(&api.CDIDevice{Name: c.key})
	}
	return nil
}

func mount(record map[string]any) *api.Mount {
	from, to := record["host_path"].(string), record["container_path"].(string)
	m := &api.Mount{Destination: to, Source: from, Type: "bind", Options: []string{"rbind"}}
	for _, option := range []struct{ key, value, option string }{
		{"readonly", "true", "ro"}, {"recursive_read_only", "true", "rro"},
		{"propagation", "host_to_container", "rslave"}, {"propagation", "bidirectional", "rshared"},
	} {
		if record[option.key] == option.value {
			m.Options = append(m.Options, option.option)
		}
	}
	return m
}

func device(record map[string]any) (*api.LinuxDevice, error) {
	var stat syscall.Stat_t
	path := record["host_path"].(string)
	if err := syscall.Stat(path, &stat); err != nil {
		return nil, fmt.Errorf("device %s: %w", path, err)
	}
	kind := map[uint32]string{syscall.S_IFBLK: "b", syscall.S_IFCHR: "c"}[stat.Mode&syscall.S_IFMT]
	if kind == "" {
		return nil, errors.New(path + " is no device")
	}
	major, minor := int64(stat.Rdev>>8&0xfff), int64(stat.Rdev&0xff|stat.Rdev>>12&0xfff00)
	return &api.LinuxDevice{Path: record["container_path"].(string), Type: kind, Major: major, Minor: minor}, nil
}

// Synchronize implements NRI's stub, as the methods below do. NRI calls it when it has taken the plugin.
func (h *host) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	log.Printf("serving %d modules", len(h.guests))
	return nil, nil
}

// CreateContainer asks the guests before a container is made.
func (h *host) CreateContainer(
	ctx context.Context, pod *api.PodSandbox, c *api.Container,
) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	changes, err := h.tell(ctx, abi.PreCreateContainer, pod, c)
	if err != nil {
		return nil, nil, err
	}
	h.pending.add(c.GetId(), changes)
	a := &api.ContainerAdjustment{}
	for _, change := range changes {
		if err := adjust(a, change); err != nil {
			return nil, nil, err
		}
	}
	return a, nil, nil
}

func (h *host) UpdateContainer(
	ctx context.Context, pod *api.PodSandbox, c *api.Container, r *api.LinuxResources,
) ([]*api.ContainerUpdate, error) {
	c.Linux.Resources = r // with the request applied
	changes, err := h.tell(ctx, abi.PreUpdateContainerResources, pod, c)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	h.pending.add(c.GetId(), changes)
	u := &api.ContainerUpdate{}
	u.SetContainerId(c.GetId())
	for _, change := range changes {
		setResource(u, change)
	}
	return []*api.ContainerUpdate{u}, nil
}

func (h *host) notify(ctx context.Context, hook abi.Hook, pod *api.PodSandbox, c *api.Container) error {
	_, err := h.tell(ctx, hook, pod, c)
	return err
}

func (h *host) RunPodSandbox(ctx context.Context, p *api.PodSandbox) error {
	return h.notify(ctx, abi.PostRunPodSandbox, p, nil)
}

func (h *host) StopPodSandbox(ctx context.Context, p *api.PodSandbox) error {
	return h.notify(ctx, abi.PostStopPodSandbox, p, nil)
}

func (h *host) RemovePodSandbox(ctx context.Context, p *api.PodSandbox) error {
	return h.notify(ctx, abi.PostRemovePodSandbox, p, nil)
}

func (h *host) PostCreateContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	return h.notify(ctx, abi.PostCreateContainer, p, c)
}

func (h *host) StartContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	return h.notify(ctx, abi.PreStartContainer, p, c)
}

func (h *host) PostStartContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	return h.notifyAndWrite(ctx, abi.PostStartContainer, p, c)
}

func (h *host) PostUpdateContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	return h.notifyAndWrite(ctx, abi.PostUpdateContainerResources, p, c)
}

func (h *host) StopContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, h.notify(ctx, abi.PostStopContainer, p, c)
}

func (h *host) RemoveContainer(ctx context.Context, p *api.PodSandbox, c *api.Container) error {
	return h.notify(ctx, abi.PostRemoveContainer, p, c)
}
