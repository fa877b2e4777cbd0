// Command readwrite is a guest for benchmarks, in Go here and in Rust beside it: both
// do the same. Its hook reads a namespace, a label, an annotation and two numbers, and sets
// two numbers and an annotation, as plugins do; where the container's annotation
// example.com/do is "work", it counts words and sorts them instead.
package main

import (
	"maps"
	"slices"
	"strconv"

	wp "github.com/wasmproxy/wasmproxy/sdk"
)

func main() {} // never runs

func init() {
	wp.Plugin("readwrite", "1.0.0").Needs(wp.CapResources, wp.CapAnnotations).OnPreCreateContainer(create)
}

func create(c *wp.PreCreateContainer) error {
	if do, _ := c.Annotation("example.com/do"); do == "work" {
		return c.SetAnnotation("example.com/found", work())
	}
	tier, _ := c.Pod().Label("tier")
	quota, period := c.Resources().CPUQuota(), c.Resources().CPUPeriod()
	shares := int64(1024)
	if c.Pod().Namespace() == "prod" {
		shares = 2048
	}
	if err := c.Resources().SetCPUQuota(max(quota, period)); err != nil {
		return err
	}
	if err := c.Resources().SetCPUShares(shares); err != nil {
		return err
	}
	return c.SetAnnotation("example.com/tier", tier)
}

// work counts a thousand words in a map and returns the first of them, sorted.
func work() string {
	count := map[string]int{}
	for i := range 1000 {
		count[strconv.Itoa(i*7919%257)]++
	}
	return slices.Sorted(maps.Keys(count))[0]
}
