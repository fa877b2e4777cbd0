// Command memory-qos is a plugin that protects and throttles the memory of containers by their
// requests and limits, as KEP-2570 describes it, with cgroup v2. README.md is its manual.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// tickMS is how often memory.pressure is read. The kernel averages over the ten seconds before.
const tickMS = 10_000

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("memory-qos", "1.0.0").
		Describe("memory.min, memory.low and memory.high by requests and limits, after KEP-2570").
		License("Apache-2.0").
		Needs(wp.CapStoreRead, wp.CapCgroupRead, wp.CapCgroupWrite, wp.CapUpdateOthers).
		KeepMemory().
		ConfigSchema(schema).
		OnConfigure(configure).
		OnPreCreateContainer(create).
		OnPostStartContainer(func(c *wp.PostStartContainer) error { return protectPod(c.Pod()) }).
		OnPreUpdateContainerResources(update).
		OnPostUpdateContainerResources(func(c *wp.PostUpdateContainerResources) error { return protectPod(c.Pod()) }).
		OnSynchronize(synchronize).
		OnTick(tick, tickMS)
}

// create leaves a file at the kernel's default unless the container needs another value.
func create(c *wp.PreCreateContainer) error {
	if !supported() {
		return nil
	}
	v, err := valuesOf(c.Container)
	if err != nil {
		return err
	}
	return v.apply(c.Resources().Resources, c.SetCgroup)
}

// update takes earlier values back, too: after a resize the limit may equal the request.
func update(c *wp.PreUpdateContainerResources) error {
	if !supported() {
		return nil
	}
	v, err := valuesOf(c.Container)
	if err != nil {
		return err
	}
	return v.orDefault().keepRaised(c.Container).apply(c.Resources().Resources, c.SetCgroup)
}

// synchronize gives the containers of an older pod their values.
func synchronize(p *wp.Synchronize) error {
	if !supported() {
		return nil
	}
	for _, c := range p.Containers() {
		if ended(c.Container) {
			continue
		}
		v, err := valuesOf(c.Container)
		if err != nil {
			once(c.ID(), err.Error()) // a failure would keep the plugin from being loaded
		}
		if err := v.keepRaised(c.Container).apply(c.Resources().Resources, c.SetCgroup); err != nil {
			return err
		}
	}
	return sumOf(p.Pod).apply(p.Resources(), p.SetCgroup)
}

// protectPod gives a pod the sum of its containers' protection: the kernel protects a
// cgroup by no more than the one around it has.
func protectPod(p wp.Pod) error {
	if !supported() {
		return nil
	}
	found, ok := wp.FindPodByID(p.ID())
	if !ok {
		return nil
	}
	return sumOf(found.Pod).apply(found.Pod.Resources(), found.SetCgroup)
}

// said are the files of which the log has a warning already.
var said []string

// once logs a warning about a file, unless it has one already.
func once(file, warning string) {
	for _, s := range said {
		if s == file {
			return
		}
	}
	said = append(said, file)
	wp.Log(wp.LevelWarn, file+" "+warning)
}

// supported tells whether the node has cgroup v2.
func supported() bool {
	if wp.HasFeature(wp.FeatureCgroupV2) {
		return true
	}
	once("cgroup v2", "is UNSUPPORTED by this node: the plugin does nothing")
	return false
}
