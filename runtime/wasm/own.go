package wasm

// This file holds the host functions of what is a plugin's own: its values and
// metrics, its log's level, numbers that look random, what its node can do.

import (
	"context"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// txn is what the call writes to the plugin's values.
func (c *call) txn() *plugin.Txn {
	if c.kv == nil {
		c.kv = c.of.options.KV.Begin()
	}
	return c.kv
}

func kvGet(_ context.Context, f *frame, key string) int64 {
	v, errno := f.txn().Get(key)
	return answer(f, 2, v, errno)
}

func kvSet(_ context.Context, f *frame, key, value string) int64 {
	if f.event.Hook() == 0 { // an instance that starts is one of several
		return int64(abi.ReadOnly)
	}
	return int64(f.txn().Set(key, value))
}

func kvDelete(_ context.Context, f *frame, key string) int64 {
	if f.event.Hook() == 0 {
		return int64(abi.ReadOnly)
	}
	f.txn().Delete(key)
	return 0
}

func metric(_ context.Context, f *frame, name string) int64 {
	if f.adj.MayReadSecrets() && len(name) <= plugin.MaxSeriesName {
		name = f.adj.Redact(name)
	}
	return int64(f.of.options.Metrics.Update(f.i32(0), name, int64(f.stack[3])))
}

// logLevel returns the lowest level that is kept, one above the highest if none is.
func logLevel(_ context.Context, f *frame) int64 {
	for level := observe.Debug; level <= observe.Error; level++ {
		if f.observer().Wants(observe.KindPluginLog(level)) {
			return int64(level)
		}
	}
	return abi.LogError + 1
}

// maxNumbers is how many bytes of random a guest gets at a time.
const maxNumbers = 256

func random(_ context.Context, f *frame) int64 {
	b := f.bytes(0)
	if len(b) > maxNumbers {
		return int64(abi.TooLarge)
	}
	f.fill(b)
	f.moved += len(b)
	return 0
}

func feature(_ context.Context, f *frame) int64 {
	for _, has := range f.of.options.Features {
		if has == abi.Feature(f.i32(0)) {
			return 1
		}
	}
	return 0
}
