package wasm

import (
	"fmt"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryBudget counts the bytes that all guests of an engine take, their memories and
// the images that these are reset to.
type memoryBudget struct {
	limit int64
	used  atomic.Int64
}

// take takes n bytes, or none and says why.
func (b *memoryBudget) take(n int64) error {
	if used := b.used.Add(n); used > b.limit {
		b.used.Add(-n)
		return fmt.Errorf("%.4g MiB more do not fit into the memory budget of all guests: %.4g of %.4g MiB are taken", mib(n), mib(used-n), mib(b.limit))
	}
	return nil
}

// give returns n bytes.
func (b *memoryBudget) give(n int64) { b.used.Add(-n) }

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// memory is the linear memory of one instance, paid for out of the budget. wazero
// asks it for more when the guest grows. It serves one goroutine at a time.
type memory struct {
	budget *memoryBudget
	taken  int64 // at least as much as buf can hold
	buf    []byte
	denied error // why the guest was last refused more, nil if it was not
}

var _ experimental.LinearMemory = (*memory)(nil)

// newMemory takes the memory that an instance begins with. It is taken before
// wazero asks for it, which cannot cope with a refusal at that time.
func newMemory(b *memoryBudget, size int64) (*memory, error) {
	if err := b.take(size); err != nil {
		return nil, err
	}
	return &memory{budget: b, taken: size, buf: make([]byte, 0, size)}, nil
}

// Allocate implements experimental.MemoryAllocator for the one memory of a module.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. A guest that grows page by page
// would copy everything each time, so its memory grows by a quarter at least, if the
// budget has it.
func (m *memory) Reallocate(size uint64) []byte {
	if size <= uint64(cap(m.buf)) {
		m.buf = m.buf[:size]
		return m.buf
	}
	room := max(size, uint64(cap(m.buf)+cap(m.buf)/4))
	if m.extend(room) != nil {
		room = size
		if m.denied = m.extend(room); m.denied != nil {
			return nil
		}
	}
	grown := make([]byte, size, room)
	copy(grown, m.buf)
	m.buf = grown
	return m.buf
}

// extend takes what is missing to this size.
func (m *memory) extend(size uint64) error {
	more := max(int64(size)-m.taken, 0)
	if err := m.budget.take(more); err != nil {
		return err
	}
	m.taken += more
	return nil
}

// Free implements experimental.LinearMemory. It may be called more than once.
func (m *memory) Free() {
	m.budget.give(m.taken)
	m.taken, m.buf = 0, nil
}
