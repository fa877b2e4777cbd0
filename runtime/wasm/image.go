package wasm

import (
	"bytes"
	"fmt"
	"slices"
)

// maxGrown is how much larger than its image an instance's memory may be to be
// reset, in bytes; memory cannot shrink.
const maxGrown = 8 << 20

// block is how much memory is compared at a time. A page of WebAssembly is so many of them.
const block = 4 << 10

var zeros [block]byte

// image is all that an instance can remember, as it was when it was ready for its
// first event: memory, mutable globals and the clock. Tables and segments do not
// change: package preflight refuses the instructions that would. Instances that
// begin alike share one image.
type image struct {
	memory  [][]byte // its blocks, nil for those that are zero, without those at its end
	size    uint32   // of the memory, with them
	globals []uint64
	clock   clock
	users   int // instances that are reset to it; guarded by the plugin's mu
}

// view is an instance's whole memory. It is valid until the guest runs on.
func (g *guest) view() []byte {
	m := g.instance.Memory()
	b, _ := m.Read(0, m.Size()) // all of it is there
	return b
}

// bytes is how much of the memory is kept.
func (i *image) bytes() (n int64) {
	for _, part := range i.memory {
		n += int64(len(part))
	}
	return n
}

// remember gives an instance the image that it will be reset to.
func (p *guests) remember(g *guest) error {
	b := g.view()
	own := &image{size: uint32(len(b)), clock: g.clock, users: 1}
	for at := 0; at < len(b); at += block {
		if part := b[at:][:block]; !bytes.Equal(part, zeros[:]) {
			own.memory = append(own.memory, make([][]byte, at/block-len(own.memory))...)
			own.memory = append(own.memory, part)
		}
	}
	for _, global := range g.globals {
		own.globals = append(own.globals, global.Get())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.images {
		same := i.size == own.size && i.clock == own.clock && slices.Equal(i.globals, own.globals)
		if same && slices.EqualFunc(i.memory, own.memory, bytes.Equal) {
			i.users++
			g.image = i
			return nil
		}
	}
	if err := p.memory.take(own.bytes()); err != nil {
		return fmt.Errorf("keeping its first state: %w", err)
	}
	all := make([]byte, 0, own.bytes()) // until now the image shares the instance's memory
	for n, part := range own.memory {
		if part != nil {
			all = append(all, part...)
			own.memory[n] = all[len(all)-block:]
		}
	}
	p.images, g.image = append(p.images, own), own
	return nil
}

// reusable reports whether an instance can be reset after what it did. Its memory
// cannot shrink, so it is given up if it grew too far, or as far as the budget let it.
func (g *guest) reusable() bool {
	if g.broken || g.instance.IsClosed() || g.memory.denied != nil {
		return false
	}
	return uint64(g.instance.Memory().Size()) <= uint64(g.image.size)+maxGrown
}

// reset makes an instance forget all that it did since its image was taken, but for
// how far its memory grew, unless that was done since its last call.
func (g *guest) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dirty {
		g.restoreImage()
		g.dirty = false
	}
}

func (g *guest) restoreImage() {
	restore(g.view(), g.image.memory)
	for n, v := range g.image.globals {
		g.globals[n].Set(v)
	}
	g.clock = g.image.clock
}

// restore makes memory equal to image, followed by zeros. Most blocks have not
// changed; to compare is cheaper than to write, and takes no memory where the guest
// has written nothing. Half of a guest's memory is zero, and one block of zeros stays in
// the processor's nearest cache.
func restore(memory []byte, image [][]byte) {
	for n := range len(memory) / block {
		is, want := memory[n*block:][:block], zeros[:]
		if n < len(image) && image[n] != nil {
			want = image[n]
		}
		if !bytes.Equal(is, want) {
			copy(is, want)
		}
	}
}
