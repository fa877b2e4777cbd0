package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/older"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

// annotation is one that the plugin understands: a whole number.
type annotation struct {
	key      string
	min, max int64
	unit     string
}

var (
	// The kernel's largest burst is MAX_BW in kernel/sched/sched.h.
	cpuBurst   = annotation{"qos.wasmproxy.io/cpu-burst", 0, 1<<44 - 1, "microseconds"}
	cpuIdle    = annotation{"qos.wasmproxy.io/cpu-idle", 0, 1, "0 or 1"}
	memoryHigh = annotation{"qos.wasmproxy.io/memory-high", 1, 1<<63 - 1, "bytes"}
)

// apply gives set what the pod asks for the container, if it asks. An error names
// the annotation.
func (a annotation) apply(c wp.Container, set func(v int64) error) error {
	v, ok, err := a.of(c)
	if !ok || err != nil {
		return err
	}
	if err := set(v); err != nil {
		return &older.Failure{Annotation: a.key, Err: err}
	}
	return nil
}

// of returns what the pod asks for the container: the annotation with the
// container's name, else the one for all. ok is false if it has neither.
func (a annotation) of(c wp.Container) (v int64, ok bool, err error) {
	key := a.key + "." + c.Name()
	text, ok := c.Pod().Annotation(key)
	if !ok {
		key = a.key
		text, ok = c.Pod().Annotation(key)
	}
	if !ok {
		return 0, false, nil
	}
	v, ok = wp.ParseInt(text)
	if !ok || v < a.min || v > a.max {
		return 0, false, wp.Failure("annotation " + key + ": \"" + text + "\" is not a whole number from " +
			wp.FormatInt(a.min) + " to " + wp.FormatInt(a.max) + " (" + a.unit + ")")
	}
	return v, true, nil
}
