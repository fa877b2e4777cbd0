// Command setter is a plugin that sets what a pod's annotations ask for. After
// set.wasmproxy.io/ comes pod or a container's name, then the target:
//
//	pod.file.cpu.weight          a cgroup file of the pod
//	main.file.cpu.idle           a cgroup file of the container main
//	main.unified.memory.high     a key of the request's unified map
//	main.field.cpu_quota         a field of the request, as is cpu_period, cpu_shares, cpuset_cpus and memory_limit
package main

import (
	"strings"

	wp "github.com/wasmproxy/wasmproxy/sdk"
)

const prefix = "set.wasmproxy.io/"

func main() {} // never runs

func init() {
	wp.Plugin("setter", "1.0.0").Needs(wp.CapResources, wp.CapUnified, wp.CapCgroupWrite, wp.CapPodLimits).
		OnPreRunPodSandbox(setPod).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return setContainer(&c.MutableContainer) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return setContainer(&c.MutableContainer) })
}

func setPod(p *wp.PreRunPodSandbox) error {
	for key, value := range p.Annotations() {
		file, ok := strings.CutPrefix(key, prefix+"pod.file.")
		if !ok {
			continue
		}
		if err := p.SetCgroup(file, value); err != nil {
			return err
		}
	}
	return nil
}

func setContainer(c *wp.MutableContainer) error {
	for key, value := range c.Pod().Annotations() {
		target, ok := strings.CutPrefix(key, prefix+c.Name()+".")
		if !ok {
			continue
		}
		if err := set(c, target, value); err != nil {
			return err
		}
	}
	return nil
}

func set(c *wp.MutableContainer, target, value string) error {
	kind, name, _ := strings.Cut(target, ".")
	switch kind {
	case "file":
		return c.SetCgroup(name, value)
	case "unified":
		return c.Resources().SetUnified(name, value)
	case "field":
		return setField(c.Resources(), name, value)
	}
	return wp.Failure("annotation " + prefix + c.Name() + "." + target + ": " + kind + " is not file, unified or field")
}

func setField(r wp.MutableResources, field, value string) error {
	if field == "cpuset_cpus" {
		return r.SetCpusetCPUs(value)
	}
	number, ok := wp.ParseInt(value)
	if !ok {
		return wp.Failure(field + ": " + value + " is not a whole number")
	}
	switch field {
	case "cpu_period":
		return r.SetCPUPeriod(number)
	case "cpu_quota":
		return r.SetCPUQuota(number)
	case "cpu_shares":
		return r.SetCPUShares(number)
	case "memory_limit":
		return r.SetMemoryLimit(number)
	}
	return wp.Failure(field + " is not a field that setter knows")
}
