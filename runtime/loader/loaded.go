package loader

import (
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// RefCounted ends when its last user releases it. A count of zero is final. It is safe for concurrent use.
type RefCounted struct {
	users atomic.Int64
	end   func()
}

// NewRefCounted returns a RefCounted with one user, the caller. end is called by the last release.
func NewRefCounted(end func()) *RefCounted {
	c := &RefCounted{end: end}
	c.users.Store(1)
	return c
}

// Acquire reports whether the thing had not ended, and then keeps it until Release is called.
func (c *RefCounted) Acquire() bool {
	for {
		n := c.users.Load()
		if n == 0 {
			return false
		}
		if c.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release ends what an Acquire, or NewRefCounted, has begun.
func (c *RefCounted) Release() {
	if c.users.Add(-1) == 0 {
		c.end()
	}
}

// Loaded is a plugin that generations share: it is closed when the last of them has ended.
type Loaded struct {
	*RefCounted
	plugin.Plugin
	breaker *plugin.Breaker // nil if it is asked whatever it does
}

// Persistent is a plugin's state on the host. It outlives a reload, until the plugin's files go.
type Persistent struct {
	Values  *plugin.KV
	Metrics *plugin.Metrics
}

// NewPersistent returns the state of a plugin that has done nothing yet.
func NewPersistent() Persistent { return Persistent{plugin.NewKV(), plugin.NewMetrics()} }
