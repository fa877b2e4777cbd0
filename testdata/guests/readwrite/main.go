// Command readwrite is a guest for benchmarks, in Go here and in Rust beside it: both
// do the same. Its hook reads five values and asks for three changes, as plugins do;
// where the container's annotation example.com/do is "work", which is one of the
// five, it counts words and sorts them instead.
package main

import (
	"maps"
	"slices"
	"strconv"

	wp "github.com/wasmproxy/wasmproxy/sdk"
)

func main() {} // never runs

func init() {
	wp.Plugin("readwrite", "1.0.0").Needs(wp.CapResources, wp.CapUnified, wp.CapAnnotations).OnPreCreateContainer(create)
}

func create(c *wp.PreCreateContainer) error {
	if do, _ := c.Annotation("example.com/do"); do == "work" {
		return c.SetAnnotation("example.com/found", work())
	}
	tier, _ := c.Pod().Label("tier")
	name := c.Name()
	quota, period := c.Resources().CPUQuota(), c.Resources().CPUPeriod()
	if err := c.Resources().SetCPUQuota(max(quota, period)); err != nil {
		return err
	}
	if err := c.Resources().SetUnified("memory.high", "max"); err != nil {
		return err
	}
	return c.SetAnnotation("example.com/tier", name+"/"+tier)
}

// work counts a thousand words in a map and returns the first of them, sorted.
func work() string {
	count := map[string]int{}
	for i := range 1000 {
		count[strconv.Itoa(i*7919%257)]++
	}
	return slices.Sorted(maps.Keys(count))[0]
}
