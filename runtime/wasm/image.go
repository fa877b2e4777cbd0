package wasm

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero/api"
)

// maxGrown is how much larger than its image an instance's memory may be to be
// reset, in bytes; memory cannot shrink.
const maxGrown = 8 << 20

// image is all that an instance can remember, as it was when it was ready for its
// first event: memory, mutable globals and the clock. Tables and segments do not
// change: package preflight refuses the instructions that would. Instances that
// begin alike share one image.
type image struct {
	memory  []byte // without the zeros at its end
	size    uint32 // of the memory, with them
	globals []uint64
	clock   clock
}

// globals returns the mutable globals of an instance, which exportGlobals
// made visible.
func globals(m api.Module, count int) ([]api.MutableGlobal, error) {
	all := make([]api.MutableGlobal, count)
	for n := range all {
		g, ok := m.ExportedGlobal(globalName(n)).(api.MutableGlobal)
		if !ok {
			return nil, fmt.Errorf("mutable global %d is out of reach", n)
		}
		all[n] = g
	}
	return all, nil
}

// view is an instance's whole memory. It is valid until the guest runs on.
func (g *guest) view() []byte {
	m := g.instance.Memory()
	b, _ := m.Read(0, m.Size()) // all of it is there
	return b
}

// snapshot takes the image of an instance, which shares its memory.
func (g *guest) snapshot() *image {
	b := g.view()
	i := &image{memory: bytes.TrimRight(b, "\x00"), size: uint32(len(b)), clock: g.clock}
	for _, global := range g.globals {
		i.globals = append(i.globals, global.Get())
	}
	return i
}

// equal reports whether two images are the same.
func (i *image) equal(j *image) bool {
	return i.size == j.size && i.clock == j.clock && slices.Equal(i.globals, j.globals) && bytes.Equal(i.memory, j.memory)
}

// remember gives an instance the image that it will be reset to.
func (p *guests) remember(g *guest) error {
	own := g.snapshot()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.images {
		if i.equal(own) {
			g.image = i
			return nil
		}
	}
	if err := p.memory.take(int64(len(own.memory))); err != nil {
		return fmt.Errorf("keeping its first state: %w", err)
	}
	own.memory = bytes.Clone(own.memory)
	p.images, g.image = append(p.images, own), own
	return nil
}

// forget gives back what the images take.
func (p *guests) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.images {
		p.memory.give(int64(len(i.memory)))
	}
	p.images = nil
}

// reusable reports whether an instance can be reset after what it did. Its memory
// cannot shrink, so it is given up if it grew too far, or as far as the budget let it.
func (g *guest) reusable() bool {
	size := uint64(g.instance.Memory().Size())
	return !g.broken && !g.instance.IsClosed() && g.memory.denied == nil && size <= uint64(g.image.size)+maxGrown
}

// soil notes that an instance served a call.
func (g *guest) soil() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dirty = true
}

// ready makes an instance forget all that it did since its image was taken, but for
// how far its memory grew, unless that was done since its last call.
func (g *guest) ready() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dirty {
		g.reset()
		g.dirty = false
	}
}

func (g *guest) reset() {
	restore(g.view(), g.image.memory)
	for n, v := range g.image.globals {
		g.globals[n].Set(v)
	}
	g.clock = g.image.clock
}

// block is how much memory is compared at a time.
const block = 4 << 10

var zeros [block]byte

// restore makes memory equal to image followed by zeros. Most pages have not
// changed; to compare is cheaper than to write, and takes no memory where the guest
// has written nothing.
func restore(memory, image []byte) {
	for len(memory) > 0 {
		n := min(block, len(memory))
		want := zeros[:n]
		if len(image) > 0 {
			n = min(n, len(image))
			want, image = image[:n], image[n:]
		}
		if !bytes.Equal(memory[:n], want) {
			copy(memory, want)
		}
		memory = memory[n:]
	}
}
