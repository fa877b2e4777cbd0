package wasm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryBudget counts the bytes that all guests of an engine take, their memories and
// the images that these are reset to. One that is part of another counts for both, and has no
// limit of its own.
type memoryBudget struct {
	limit int64
	used  atomic.Int64
	of    *memoryBudget // nil for an engine's
}

var errNoRoom = errors.New("do not fit into the memory budget of all guests")

// take takes n bytes, or none and says why.
func (b *memoryBudget) take(n int64) error {
	if b.of != nil {
		if err := b.of.take(n); err != nil {
			return err
		}
		b.used.Add(n)
		return nil
	}
	if used := b.used.Add(n); used > b.limit {
		b.used.Add(-n)
		return fmt.Errorf("%.4g MiB more %w: %.4g of %.4g MiB are taken; raise the setting guest-memory", mib(n), errNoRoom, mib(used-n), mib(b.limit))
	}
	return nil
}

// give returns n bytes.
func (b *memoryBudget) give(n int64) {
	b.used.Add(-n)
	if b.of != nil {
		b.of.give(n)
	}
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// memory is the linear memory of one instance, paid for out of the budget. wazero
// asks it for more when the guest grows. It serves one goroutine at a time.
//
// It is address space outside Go's heap, of which the kernel gives what is written
// to: it grows in place, and goes back at once. Nothing may look at it after Free.
type memory struct {
	budget *memoryBudget
	space  []byte // all that it may grow to
	size   int64
	limit  int64 // of size; at most len(space)
	denied error // why the guest was last refused more, nil if it was not
}

var _ experimental.LinearMemory = (*memory)(nil)

// newMemory takes the memory that an instance begins with, of at most limit bytes. It
// is taken before wazero asks for it, which cannot cope with a refusal at that time.
func newMemory(b *memoryBudget, size, limit int64) (*memory, error) {
	if err := b.take(size); err != nil {
		return nil, err
	}
	space, err := syscall.Mmap(-1, 0, int(limit), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		b.give(size)
		return nil, fmt.Errorf("reserving %.4g MiB of memory: %w", mib(limit), err)
	}
	return &memory{budget: b, space: space, size: size, limit: limit}, nil
}

// Allocate implements experimental.MemoryAllocator for the one memory of a module.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(m.limit) {
		return nil
	}
	more := max(int64(size)-m.size, 0)
	if m.denied = m.budget.take(more); m.denied != nil {
		return nil
	}
	m.size += more
	return m.space[:size:size]
}

// cap sets a lower limit than there was at first.
func (m *memory) cap(limit int64) error {
	if m.size > limit {
		return errors.New(tooMuchMemory(pagesOf(m.size), pagesOf(limit)))
	}
	m.limit = limit
	return nil
}

// Free implements experimental.LinearMemory. It may be called more than once.
func (m *memory) Free() {
	if m.space == nil {
		return
	}
	_ = syscall.Munmap(m.space) // fails for what is not mapped only
	m.budget.give(m.size)
	m.space, m.size = nil, 0
}
