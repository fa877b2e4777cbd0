package wasm

import (
	"bytes"
	"errors"
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
func (g *guest) view() ([]byte, error) {
	m := g.instance.Memory()
	b, ok := m.Read(0, m.Size())
	if !ok {
		return nil, errors.New("the instance's memory cannot be read")
	}
	return b, nil
}

// snapshot takes the image of an instance.
func (g *guest) snapshot() (*image, error) {
	b, err := g.view()
	if err != nil {
		return nil, err
	}
	i := &image{memory: bytes.TrimRight(b, "\x00"), size: uint32(len(b)), clock: g.clock}
	for _, global := range g.globals {
		i.globals = append(i.globals, global.Get())
	}
	return i, nil
}

// equal reports whether two images are the same.
func (i *image) equal(j *image) bool {
	return i.size == j.size && i.clock == j.clock && slices.Equal(i.globals, j.globals) && bytes.Equal(i.memory, j.memory)
}

// remember gives an instance the image that it will be reset to.
func (p *guests) remember(g *guest) error {
	own, err := g.snapshot()
	if err != nil {
		return err
	}
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

// errGrown is why an instance is replaced instead of reset: its memory grew too far,
// or as far as the budget let it.
var errGrown = errors.New("its memory grew too far")

// reset makes an instance forget all that it did since its image was taken, but
// for how far its memory grew. After an error it must not be used again.
func (g *guest) reset() error {
	if g.instance.IsClosed() {
		return errors.New("it is closed")
	}
	b, err := g.view()
	if err != nil {
		return err
	}
	if len(b) > int(g.image.size)+maxGrown || g.memory.denied != nil {
		return errGrown
	}
	restore(b, g.image.memory)
	for n, v := range g.image.globals {
		g.globals[n].Set(v)
	}
	g.clock = g.image.clock
	return nil
}

// restore makes memory equal to image followed by zeros. Most pages have not
// changed, and to compare is cheaper than to write.
func restore(memory, image []byte) {
	const block = 4 << 10
	for len(image) > 0 {
		n := min(block, len(image))
		if !bytes.Equal(memory[:n], image[:n]) {
			copy(memory, image[:n])
		}
		memory, image = memory[n:], image[n:]
	}
	clear(memory)
}
