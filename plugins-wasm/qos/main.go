// Command qos is a plugin that gives the containers of a pod what its
// annotations ask for and Kubernetes has no field for: CPU burst, idle CPU and
// memory.high. README.md is its manual.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("qos", "1.0.0").
		Describe("CPU burst, idle CPU and memory.high of containers, by pod annotation").
		License("Apache-2.0").
		Needs(wp.CapUnified, wp.CapCgroupWrite).
		OnPreCreateContainer(create).
		OnPreUpdateContainerResources(update)
}

// create asks for everything: what CRI can say goes into the request, cgroup
// files are written when the container has started.
func create(c *wp.PreCreateContainer) error {
	if err := setMemory(&c.MutableContainer); err != nil {
		return err
	}
	return setCPU(c.Container, c)
}

// update asks for everything again: the quota that bounds a burst may be another
// now, and the request may bring a memory.high of kubelet's own.
func update(c *wp.PreUpdateContainerResources) error {
	if err := setMemory(&c.MutableContainer); err != nil {
		return err
	}
	return setCPU(c.Container, c)
}

// cgroupWriter is an event that takes cgroup files of its container.
type cgroupWriter interface {
	SetCgroup(file, value string) error
}

func setCPU(c wp.Container, w cgroupWriter) error {
	err := cpuBurst.apply(c, func(us int64) error {
		return w.SetCgroup("cpu.max.burst", wp.FormatInt(clamped(us, c.Resources().CPUQuota())))
	})
	if err != nil {
		return err
	}
	return cpuIdle.apply(c, func(idle int64) error { return w.SetCgroup("cpu.idle", wp.FormatInt(idle)) })
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

func setMemory(c *wp.MutableContainer) error {
	return memoryHigh.apply(c.Container, func(bytes int64) error {
		err := c.Resources().SetUnified("memory.high", wp.FormatInt(bytes))
		if wp.Handled(err, wp.ErrUnsupported) {
			wp.Log(wp.LevelInfo, memoryHigh.key+" needs cgroup v2, and this node has v1: not set")
			return nil
		}
		return err
	})
}
