// Command witness is a plugin that tells what it was shown of a container, as
// two hashes, of its resources and of its environment, joined by a hyphen: in the
// annotation witness.wasmproxy.io/hash and in a log line. Hashes are equal when
// the proxy showed the same, whether it learned it from a request or, after a
// restart, from the runtime. It is to be granted env.
package main

import (
	"encoding/hex"
	"hash"
	"hash/fnv"
	"strconv"

	wp "github.com/wasmproxy/wasmproxy/sdk"
)

func main() {} // never runs

func init() {
	wp.Plugin("witness", "1.0.0").Needs(wp.CapStoreRead, wp.CapAnnotations, wp.CapEnv).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return witness(&c.MutableContainer) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return witness(&c.MutableContainer) }).
		OnPostUpdateContainerResources(func(c *wp.PostUpdateContainerResources) error {
			wp.Log(wp.LevelInfo, "updated "+c.Pod().Name()+"/"+c.Name()) // the caller has its answer
			return nil
		})
}

func witness(c *wp.MutableContainer) error {
	resources, env := fnv.New64a(), fnv.New64a()
	writeResources(resources, c.Container.Resources())
	// Of a container that exists, also what it has by now: the request names only what changes.
	if known, ok := wp.FindContainer(c.ID()); ok {
		writeResources(resources, known.Container.Resources())
	}
	for name, value := range c.Envs() {
		write(env, name, value)
	}
	sum := hex.EncodeToString(resources.Sum(nil)) + "-" + hex.EncodeToString(env.Sum(nil))
	wp.Log(wp.LevelInfo, "saw "+c.Pod().Name()+"/"+c.Name()+" as "+sum)
	return c.SetAnnotation("witness.wasmproxy.io/hash", sum)
}

func writeResources(h hash.Hash, r wp.Resources) {
	for _, number := range []int64{
		r.CPUPeriod(), r.CPUQuota(), r.CPUShares(), r.MemoryLimit(), r.MemorySwap(), r.OOMScoreAdj(),
	} {
		write(h, strconv.FormatInt(number, 10))
	}
	write(h, r.CpusetCPUs(), r.CpusetMems())
}

// write writes texts so that no two lists of them are written alike.
func write(h hash.Hash, texts ...string) {
	for _, text := range texts {
		h.Write([]byte(strconv.Quote(text)))
	}
}
