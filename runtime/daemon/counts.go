package daemon

import (
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// counts is how often plugins were asked, by hook, and how often they failed.
type counts struct {
	asked, failed [64]atomic.Uint64
}

// observe is told of every call of a plugin. A refusal is no failure.
func (c *counts) observe(o plugin.Outcome) {
	c.asked[o.Hook].Add(1)
	var refused *plugin.Rejection
	if o.Err != nil && !errors.As(o.Err, &refused) {
		c.failed[o.Hook].Add(1)
	}
}

// attrs returns the counts that are not zero, by hook name.
func attrs(of *[64]atomic.Uint64) []any {
	var all []any
	for _, h := range abi.Hooks {
		if n := of[h.Hook].Load(); n > 0 {
			all = append(all, slog.Uint64(h.Name, n))
		}
	}
	return all
}
