// Command koordlet is a plugin that does what koordlet's three default runtime
// hooks do with what a pod says of itself: group identity, the CPUs that the
// scheduler has picked, and batch resources. README.md says what it cannot do.
package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
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
		Needs(wp.CapResources, wp.CapCgroupWrite).
		OnConfigure(configure).
		OnPreRunPodSandbox(identify).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return allocate(&c.MutableContainer) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return allocate(&c.MutableContainer) })
}

// configure reads {"groupIdentity": true}. A guest cannot look whether the
// kernel has the file, which koordlet does.
func configure(config string) error {
	switch on, _, err := json.Find(config, "groupIdentity"); {
	case err != nil:
		return err
	case on == "true":
		identities = map[string]string{"LSE": "2", "LSR": "2", "LS": "2", "BE": "-1"}
	case on != "" && on != "false":
		return wp.Failure("groupIdentity: " + on + " is neither true nor false")
	}
	return nil
}

// identify is GroupIdentity.
func identify(p *wp.PreRunPodSandbox) error {
	class, _ := p.Label(qosLabel)
	if identity := identities[class]; identity != "" {
		return p.SetCgroup("cpu.bvt_warp_ns", identity)
	}
	return nil
}

func allocate(c *wp.MutableContainer) error {
	if err := pin(c); err != nil {
		return failure(statusKey, err)
	}
	if class, _ := c.Pod().Label(qosLabel); class != "BE" {
		return nil
	}
	return failure(specKey, batch(c))
}

func failure(annotation string, err error) error {
	if err == nil {
		return nil
	}
	return wp.Failure("annotation " + annotation + ": " + err.Error())
}

// pin is CPUSetAllocator: the CPUs are the container's own, so no quota throttles
// it on them.
func pin(c *wp.MutableContainer) error {
	status, _ := c.Pod().Annotation(statusKey)
	cpus, _, err := json.Find(status, "cpuset")
	if err != nil || cpus == "" {
		return err
	}
	if err := c.Resources().SetCpusetCPUs(cpus); err != nil {
		return err
	}
	return c.Resources().SetCPUQuota(-1)
}

// batch is BatchResource: resources that Kubernetes does not count, and that
// kubelet therefore sets nothing for.
func batch(c *wp.MutableContainer) error {
	annotation, _ := c.Pod().Annotation(specKey)
	spec, known, err := json.Find(annotation, "containers", c.Name())
	if err != nil || !known {
		return err
	}
	request, err1 := quantity(spec, "requests", batchCPU)
	limit, err2 := quantity(spec, "limits", batchCPU)
	memory, err3 := quantity(spec, "limits", batchMemory)
	for _, err := range [...]error{
		err1, err2, err3,
		c.Resources().SetCPUShares(min(max(request*1024/1000, 2), 262_144)),
		c.Resources().SetCPUQuota(quota(limit)),
		setMemory(c, memory),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func quota(milliCPU int64) int64 {
	if milliCPU <= 0 {
		return -1
	}
	return max(milliCPU*(defaultPeriod/1000), 1000) // the kernel takes no less
}

// setMemory leaves a container without a limit as it is: CRI-O refuses to lift
// what is not there.
func setMemory(c *wp.MutableContainer, bytes int64) error {
	switch {
	case bytes > 0:
		return c.Resources().SetMemoryLimit(bytes)
	case c.Resources().MemoryLimit() > 0:
		return c.Resources().SetMemoryLimit(-1)
	}
	return nil
}
