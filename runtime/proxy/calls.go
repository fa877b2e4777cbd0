package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// A caller chooses the names of methods that are no part of CRI, so how many of
// them are counted one by one, and how long their names are, has a limit.
const (
	maxForeign     = 64
	maxForeignName = 256 // bytes
	otherMethods   = "other"
)

// calls counts calls by full method name.
type calls struct {
	known   map[string]*atomic.Uint64 // the map never changes
	mu      sync.Mutex
	foreign map[string]uint64 // guarded by mu
}

func newCalls(shapes map[string]cri.Shape) *calls {
	c := &calls{known: make(map[string]*atomic.Uint64, len(shapes)), foreign: make(map[string]uint64)}
	for method := range shapes {
		c.known[method] = new(atomic.Uint64)
	}
	return c
}

func (c *calls) add(method string) {
	if n := c.known[method]; n != nil {
		n.Add(1)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.foreign[method]; !ok && (len(c.foreign) >= maxForeign || len(method) > maxForeignName) {
		method = otherMethods
	}
	c.foreign[method]++
}

func (c *calls) snapshot() map[string]uint64 {
	counts := make(map[string]uint64)
	for method, n := range c.known {
		if n := n.Load(); n > 0 {
			counts[method] = n
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for method, n := range c.foreign {
		counts[method] = n
	}
	return counts
}
