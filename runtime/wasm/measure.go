package wasm

import (
	"context"
	"errors"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Usage returns how many instances of a plugin that an Engine loaded there are, and how many
// bytes of memory they take, with the images that they are reset to; zero for another plugin.
func Usage(p plugin.Plugin) (instances int, memory int64) {
	of, ok := p.(*guests)
	if !ok {
		return 0, 0
	}
	return int(of.instances.Load()), of.memory.used.Load()
}

// Memory returns how many bytes all guests take, and how many they may.
func (e *Engine) Memory() (used, limit int64) { return e.memory.used.Load(), e.memory.limit }

// Steps is what single steps of a plugin's life took, one duration for each time.
type Steps struct {
	Instantiate []time.Duration // an instance that is ready for events
	Reset       []time.Duration // of one that changed nothing; nil if the plugin keeps its memory
}

// Measure makes n more instances of a plugin that an Engine loaded, one after
// another, and closes them. It is for benchmarks.
func Measure(ctx context.Context, p plugin.Plugin, n int) (s Steps, err error) {
	of, ok := p.(*guests)
	if !ok {
		return s, errors.New("measuring a plugin that is no wasm module")
	}
	for range n {
		start := time.Now()
		g, err := of.open(ctx)
		if err != nil {
			return s, wrap("measuring", err)
		}
		s.Instantiate = append(s.Instantiate, time.Since(start))
		if !of.keeps {
			start = time.Now()
			g.restoreImage()
			s.Reset = append(s.Reset, time.Since(start))
		}
		g.close()
	}
	return s, nil
}
