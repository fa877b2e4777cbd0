// Command cpu-normalization is a plugin that gives a container as much work per second
// on a node with fast CPUs as on one with slow ones: it divides the CPU quota by the
// ratio of the two. README.md is its manual.
package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

const (
	ratioKey = "cpu-normalization.wasmproxy.io/ratio" // of a pod
	quotaKey = "cpu-normalization.wasmproxy.io/quota" // of a container: what the plugin has made of its quota

	// What Koordinator v1.8.0 writes on a pod.
	qosLabel  = "koordinator.sh/qosClass"
	statusKey = "scheduling.koordinator.sh/resource-status"
)

// node is the ratio of the node, one if there is none.
var node ratio

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("cpu-normalization", "1.0.0").
		Describe("scales CPU quotas by how fast the node's CPUs are").
		License("Apache-2.0").
		Needs(wp.CapResources, wp.CapAnnotations).
		ConfigSchema(`{"type":"object","additionalProperties":false,"properties":{"ratio":{"type":"string"}}}`).
		OnConfigure(configure).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return normalize(&c.MutableContainer) }).
		OnPreUpdateContainerResources(update)
}

func configure(config string) error {
	text, ok, err := json.Find(config, "ratio")
	if !ok {
		node = one
		return err
	}
	if node, err = parse(text); err != nil {
		return wp.Failure("config: ratio: " + err.Error())
	}
	return nil
}

// update scales again what kubelet sends. A container that the plugin has not made keeps
// its quota; so does one whose quota the request leaves as it is.
func update(c *wp.PreUpdateContainerResources) error {
	made, ok := c.Annotation(quotaKey)
	if !ok || made == wp.FormatInt(c.Resources().CPUQuota()) {
		return nil
	}
	return normalize(&c.MutableContainer)
}

func normalize(c *wp.MutableContainer) error {
	quota := c.Resources().CPUQuota()
	if quota <= 0 {
		return nil
	}
	r, err := ratioOf(c.Pod())
	if err != nil || r == one {
		return err
	}
	scaled := r.scale(quota)
	c.SetAnnotation(quotaKey, wp.FormatInt(scaled))
	return c.Resources().SetCPUQuota(scaled)
}

// ratioOf returns the pod's own ratio, or else the node's.
func ratioOf(p wp.Pod) (ratio, error) {
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
		return one, wp.Failure("annotation " + ratioKey + ": " + err.Error())
	}
	return r, nil
}

// sharesCPUs is Koordinator's isPodCPUShare: a pod of class LS, or of none and not bound
// to CPUs.
func sharesCPUs(p wp.Pod) (bool, error) {
	if class, _ := p.Label(qosLabel); class != "" {
		return class == "LS", nil
	}
	status, _ := p.Annotation(statusKey)
	cpus, _, err := json.Find(status, "cpuset")
	if err != nil {
		return false, wp.Failure("annotation " + statusKey + ": " + err.Error())
	}
	return cpus == "", nil
}
