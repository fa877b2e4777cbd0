// Command koordlet is a plugin that does what koordlet's three default runtime
// hooks do with what a pod says of itself: group identity, the CPUs that the
// scheduler has picked, and batch resources. README.md says what it cannot do.
package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/older"
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/json"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

// What koordlet and koord-scheduler write on a pod, as of Koordinator v1.8.0.
const (
	qosLabel      = "koordinator.sh/qosClass"
	statusKey     = "scheduling.koordinator.sh/resource-status"
	specKey       = "node.koordinator.sh/extended-resource-spec"
	batchCPU      = "kubernetes.io/batch-cpu" // thousandths of a CPU
	batchMemory   = "kubernetes.io/batch-memory"
	defaultPeriod = 100_000 // µs
)

// identities are the kernel's group identities by QoS class, Koordinator's
// defaults; nil unless the node's kernel is configured to have them.
var identities map[string]string

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("koordlet", "1.0.0").
		Describe("koordlet's GroupIdentity, CPUSetAllocator and BatchResource, by labels and annotations of the pod").
		License("Apache-2.0").
		Needs(wp.CapStoreRead, wp.CapResources, wp.CapCgroupWrite, wp.CapUpdateOthers).
		OnConfigure(configure).
		OnPreRunPodSandbox(func(p *wp.PreRunPodSandbox) error { return identify(p.Pod, p.SetCgroup) }).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return allocate(c.Container, c.Resources()) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return allocate(c.Container, c.Resources()) }).
		OnSynchronize(synchronize)
}

// configure reads {"groupIdentity": true}. A guest cannot look whether the
// kernel has the file, which koordlet does.
func configure(config string) error {
	settings := json.Parse(config)
	if settings.Bool("groupIdentity", false) {
		identities = map[string]string{"LSE": "2", "LSR": "2", "LS": "2", "BE": "-1"}
	}
	return settings.Err()
}

// synchronize gives an older pod and its containers what they have not.
func synchronize(p *wp.Synchronize) error {
	older.Containers(p, func(c wp.FoundContainer) error { return allocate(c.Container, c.Resources()) })
	return identify(p.Pod, p.SetCgroup)
}

// identify is GroupIdentity.
func identify(p wp.Pod, to func(file, value string) error) error {
	class, _ := p.Label(qosLabel)
	if identity := identities[class]; identity != "" {
		return to("cpu.bvt_warp_ns", identity)
	}
	return nil
}

func allocate(c wp.Container, r wp.MutableResources) error {
	if err := pin(c.Pod(), r); err != nil {
		return &older.Failure{Annotation: statusKey, Err: err}
	}
	if class, _ := c.Pod().Label(qosLabel); class != "BE" {
		return nil
	}
	if err := batch(c, r); err != nil {
		return &older.Failure{Annotation: specKey, Err: err}
	}
	return nil
}

// pin is CPUSetAllocator: the CPUs are the container's own, so no quota throttles
// it on them.
func pin(p wp.Pod, r wp.MutableResources) error {
	annotation, _ := p.Annotation(statusKey)
	status := json.Parse(annotation)
	cpus := status.Text("cpuset", "")
	if err := status.Err(); err != nil || cpus == "" {
		return err
	}
	if err := r.SetCpusetCPUs(cpus); err != nil {
		return err
	}
	return r.SetCPUQuota(-1)
}

// batch is BatchResource: resources that Kubernetes does not count, and that
// kubelet therefore sets nothing for.
func batch(c wp.Container, r wp.MutableResources) error {
	annotation, _ := c.Pod().Annotation(specKey)
	containers := json.Parse(annotation).Object("containers")
	spec := containers.Object(c.Name())
	request := min(spec.Object("requests").Parsed(batchCPU, amount, 0), 1<<40)
	limits := spec.Object("limits")
	limit := min(limits.Parsed(batchCPU, amount, 0), 1<<40)
	memory := limits.Parsed(batchMemory, amount, 0)
	if err := spec.Err(); err != nil || !containers.Has(c.Name()) {
		return err
	}
	if err := r.SetCPUShares(min(max(request*1024/1000, 2), 262_144)); err != nil {
		return err
	}
	if err := r.SetCPUQuota(quota(limit)); err != nil {
		return err
	}
	return setMemory(r, memory)
}

// amount reads a quantity that is not negative.
func amount(text string) (int64, error) {
	v, err := quantity.Value(text)
	if err == nil && v < 0 {
		return 0, wp.Failure("\"" + text + "\" is less than 0")
	}
	return v, err
}

func quota(milliCPU int64) int64 {
	if milliCPU <= 0 {
		return -1
	}
	return max(milliCPU*(defaultPeriod/1000), 1000) // the kernel takes no less
}

// setMemory leaves a container without a limit as it is: CRI-O refuses to lift
// what is not there. A limit of -1 may be the plugin's own, which it repeats.
func setMemory(r wp.MutableResources, bytes int64) error {
	switch {
	case bytes > 0:
		return r.SetMemoryLimit(bytes)
	case r.Reported() && r.MemoryLimit() != 0:
		return r.SetMemoryLimit(-1)
	}
	return nil
}
