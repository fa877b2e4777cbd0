// Command cpu-normalization is a plugin that gives a container as much work per second
// on a node with fast CPUs as on one with slow ones: it divides the CPU quota by the
// ratio of the two. README.md is its manual.
package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/older"
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/json"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
)

const (
	ratioKey = "cpu-normalization.wasmproxy.io/ratio" // of a pod

	// What Koordinator v1.8.0 writes on a pod.
	qosLabel  = "koordinator.sh/qosClass"
	statusKey = "scheduling.koordinator.sh/resource-status"
)

// A ratio is how much faster the node's CPUs are than those that requests and limits are
// written for, in ten-thousandths.
const (
	one      = 10_000
	maxRatio = 5 * one // as koord-manager has it
)

// node is the ratio of the node, one if there is none.
var node int64

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("cpu-normalization", "1.0.0").
		Describe("scales CPU quotas by how fast the node's CPUs are").
		License("Apache-2.0").
		Needs(wp.CapStoreRead, wp.CapCgroupWrite, wp.CapUpdateOthers).
		ConfigSchema(`{"type":"object","additionalProperties":false,"properties":{"ratio":{"type":"string"}}}`).
		OnConfigure(configure).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return normalize(c.Container, c.SetCgroup) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return normalize(c.Container, c.SetCgroup) }).
		OnSynchronize(synchronize)
}

func configure(config string) error {
	settings := json.Parse(config)
	node = settings.Parsed("ratio", parse, one)
	if err := settings.Err(); err != nil {
		return wp.Failure("config: " + err.Error())
	}
	return nil
}

func synchronize(p *wp.Synchronize) error {
	older.Containers(p, func(c wp.FoundContainer) error { return normalize(c.Container, c.SetCgroup) })
	return nil
}

// normalize scales the quota in the container's cgroup. CRI's stays kubelet's, so that the plugin finds it
// there whenever it is asked again. A quota that kubelet lifts ends the one that the plugin has set.
func normalize(c wp.Container, to func(file, value string) error) error {
	if !c.Resources().Reported() { // the kernel's quota, which may be scaled already
		return nil
	}
	quota := c.Resources().CPUQuota()
	if quota == 0 {
		return nil
	}
	r, err := ratioOf(c.Pod())
	if err != nil || r == one {
		return err
	}
	if quota < 0 {
		return to("cpu.max", "max")
	}
	return to("cpu.max", wp.FormatInt(scale(quota, r)))
}

// ratioOf returns the pod's own ratio, or else the node's.
func ratioOf(p wp.Pod) (ratio int64, err error) {
	shares, err := sharesCPUs(p)
	if err != nil || !shares {
		return one, err
	}
	text, ok := p.Annotation(ratioKey)
	if !ok {
		return node, nil
	}
	r, err := parse(text)
	if err != nil {
		return one, &older.Failure{Annotation: ratioKey, Err: err}
	}
	return r, nil
}

// sharesCPUs is Koordinator's isPodCPUShare: a pod of class LS, or of none and not bound
// to CPUs.
func sharesCPUs(p wp.Pod) (bool, error) {
	if class, _ := p.Label(qosLabel); class != "" {
		return class == "LS", nil
	}
	annotation, _ := p.Annotation(statusKey)
	status := json.Parse(annotation)
	cpus := status.Text("cpuset", "")
	if err := status.Err(); err != nil {
		return false, &older.Failure{Annotation: statusKey, Err: err}
	}
	return cpus == "", nil
}

// parse reads a ratio.
func parse(text string) (int64, error) {
	ratio, err := quantity.Decimal(text, 4)
	if err != nil || ratio < one || ratio > maxRatio {
		return 0, wp.Failure("\"" + text + "\" is not a number from 1 to 5 with at most four decimals")
	}
	return ratio, nil
}

// minQuota is the least that the kernel takes, in µs.
const minQuota = 1000

// scale returns the quota that gives as much work on this node, rounded up. The largest
// quota, 1<<44, times one fits an int64.
func scale(quota, ratio int64) int64 { return max((quota*one+ratio-1)/ratio, minQuota) }
