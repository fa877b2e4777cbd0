// Command qos is a plugin that gives the containers of a pod what its
// annotations ask for and Kubernetes has no field for: CPU burst, idle CPU and
// memory.high. README.md is its manual.
package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/older"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("qos", "1.0.0").
		Describe("CPU burst, idle CPU and memory.high of containers, by pod annotation").
		License("Apache-2.0").
		Needs(wp.CapStoreRead, wp.CapUnified, wp.CapCgroupWrite, wp.CapUpdateOthers).
		OnPreCreateContainer(create).
		OnPreUpdateContainerResources(update).
		OnSynchronize(synchronize)
}

func create(c *wp.PreCreateContainer) error {
	return set(c.Container, c.SetCgroup, c.Resources().SetUnified)
}

// update asks for everything again: the quota that bounds a burst may be another
// now, and the request may bring a memory.high of kubelet's own.
func update(c *wp.PreUpdateContainerResources) error {
	return set(c.Container, c.SetCgroup, c.Resources().SetUnified)
}

// synchronize asks for everything of the containers of an older pod.
func synchronize(p *wp.Synchronize) error {
	older.Containers(p, func(c wp.FoundContainer) error { return set(c.Container, c.SetCgroup, c.Resources().SetUnified) })
	return nil
}

// setter is SetCgroup or SetUnified of an event or an object. An interface would make the plugin larger.
type setter = func(file, value string) error

// set asks for what the pod's annotations say of the container: of the runtime what CRI can say, and else
// of the proxy, which writes the files of a new container when it has started.
func set(c wp.Container, toFile, toUnified setter) error {
	err := memoryHigh.apply(c, func(bytes int64) error { return setMemory(toUnified, bytes) })
	if err != nil {
		return err
	}
	err = cpuBurst.apply(c, func(us int64) error { return toFile("cpu.max.burst", wp.FormatInt(clamped(us, quotaOf(c)))) })
	if err != nil {
		return err
	}
	return cpuIdle.apply(c, func(idle int64) error { return toFile("cpu.idle", wp.FormatInt(idle)) })
}

// quotaOf returns the container's CPU quota in µs. Where the runtime does not report it, the proxy alone cuts the burst.
func quotaOf(c wp.Container) int64 {
	if r := c.Resources(); r.Reported() {
		return r.CPUQuota()
	}
	return -1
}

// clamped returns the burst that the kernel takes: no more than the quota,
// unless there is none.
func clamped(burst, quota int64) int64 {
	if quota <= 0 || burst <= quota {
		return burst
	}
	wp.Log(wp.LevelInfo, cpuBurst.key+" "+wp.FormatInt(burst)+" is above the CPU quota: cut to "+wp.FormatInt(quota))
	return quota
}

func setMemory(to setter, bytes int64) error {
	err := to("memory.high", wp.FormatInt(bytes))
	if wp.Handled(err, wp.ErrUnsupported) {
		wp.Log(wp.LevelInfo, memoryHigh.key+" needs cgroup v2, and this node has v1: not set")
		return nil
	}
	return err
}
