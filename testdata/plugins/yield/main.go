// Command yield is a plugin with a control loop: while a pod with the label
// yield.wasmproxy.io/first is ready, the containers of pods with the annotation
// yield.wasmproxy.io/quota have that CPU quota and run only when nobody else wants
// the CPU; afterwards they have what they had. It is to be granted update.others
// and state.kv.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

const (
	first    = "yield.wasmproxy.io/first"
	quotaKey = "yield.wasmproxy.io/quota"
)

func main() {} // never runs

func init() {
	wp.Plugin("yield", "1.0.0").
		Needs(wp.CapStoreRead, wp.CapResources, wp.CapCgroupWrite, wp.CapUpdateOthers, wp.CapStateKV).
		OnTick(tick, 1000)
}

func tick(*wp.Tick) error {
	pods := wp.Pods("")
	yield := anyFirst(pods)
	for _, pod := range pods {
		quota, ok := pod.Annotation(quotaKey)
		if !ok {
			continue
		}
		us, ok := wp.ParseInt(quota)
		if !ok {
			return wp.Failure(quotaKey + " of " + pod.Name() + " is not a number: " + quota)
		}
		for _, c := range pod.Containers() {
			if err := adjust(c, yield, us); err != nil {
				return err
			}
		}
	}
	return nil
}

func anyFirst(pods []wp.FoundPod) bool {
	for _, pod := range pods {
		if _, ok := pod.Label(first); ok && pod.State() == "ready" {
			return true
		}
	}
	return false
}

// adjust makes a container yield, or takes that back. What it had before is kept
// for as long as it yields.
func adjust(c wp.FoundContainer, yield bool, quota int64) error {
	before, yields := wp.KVGet(c.ID())
	if c.State() != "running" || yields == yield {
		return nil
	}
	if yield {
		if err := wp.KVSet(c.ID(), wp.FormatInt(c.Resources().CPUQuota())); err != nil {
			return err
		}
		return set(c, quota, "1")
	}
	quota, _ = wp.ParseInt(before)
	if err := wp.KVDelete(c.ID()); err != nil {
		return err
	}
	return set(c, quota, "0")
}

func set(c wp.FoundContainer, quota int64, idle string) error {
	c.Resources().SetCPUQuota(quota)
	return c.SetCgroup("cpu.idle", idle)
}
