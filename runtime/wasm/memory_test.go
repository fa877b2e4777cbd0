package wasm

import (
	"sync"
	"testing"
)

func TestMemory(t *testing.T) {
	b := &memoryBudget{limit: 10 << 20}
	m, err := newMemory(b, 1<<20, 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	buf := m.Reallocate(1 << 20)
	buf[0], buf[len(buf)-1] = 1, 2
	if buf = m.Reallocate(4 << 20); len(buf) != 4<<20 || buf[0] != 1 || buf[1<<20-1] != 2 || b.used.Load() != 4<<20 {
		t.Errorf("after growing: %d bytes, %d taken", len(buf), b.used.Load())
	}
	if m.Reallocate(11<<20) != nil || b.used.Load() != 4<<20 {
		t.Errorf("it grew beyond the budget: %d taken", b.used.Load())
	}
	wantError(t, m.denied, "7 MiB more do not fit into the memory budget of all guests: 4 of 10 MiB are taken")
	if buf = m.Reallocate(10 << 20); len(buf) != 10<<20 || buf[0] != 1 {
		t.Error("it did not grow to the last byte of the budget")
	}
	if m.Reallocate(33<<20) != nil {
		t.Error("it grew beyond its own limit")
	}
	m.Free()
	m.Free()
	if used := b.used.Load(); used != 0 {
		t.Errorf("%d bytes are taken when all is free", used)
	}
}

// TestBudgetIsExact has many goroutines take and give what is not there for all.
func TestBudgetIsExact(t *testing.T) {
	b := &memoryBudget{limit: 100}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 1000 {
				if b.take(30) == nil {
					b.give(30)
				}
			}
		})
	}
	wg.Wait()
	if used := b.used.Load(); used != 0 {
		t.Errorf("%d are taken", used)
	}
}
