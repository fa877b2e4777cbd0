package pool_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/pool"
)

// instance panics if it is used by two at once or after its end.
type instance struct{ busy, ended atomic.Bool }

// Many users, some of whom discard: no instance has two users, there are never
// more than the pool's size, and all are ended after Close.
func TestPoolHammer(t *testing.T) {
	const size, users, rounds = 4, 16, 500
	var open, most atomic.Int64
	var all sync.Map
	p := pool.New(size, func(context.Context) (*instance, error) {
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		if rand.IntN(10) == 0 {
			open.Add(-1)
			return nil, errors.New("does not start")
		}
		g := new(instance)
		all.Store(g, nil)
		return g, nil
	}, func(g *instance) {
		if g.ended.Swap(true) {
			t.Error("ended twice")
		}
		open.Add(-1)
	})
	var wg sync.WaitGroup
	for range users {
		wg.Go(func() {
			for range rounds {
				g, err := p.Get(t.Context())
				if err != nil {
					continue
				}
				if g.busy.Swap(true) || g.ended.Load() {
					t.Error("instance is in use or ended")
				}
				g.busy.Store(false)
				if rand.IntN(5) == 0 {
					p.Discard(g)
				} else {
					p.Put(g)
				}
			}
		})
	}
	wg.Wait()
	p.Close()
	if most.Load() > size || open.Load() != 0 {
		t.Errorf("at most %d instances, %d left", most.Load(), open.Load())
	}
	all.Range(func(g, _ any) bool {
		if !g.(*instance).ended.Load() {
			t.Error("an instance outlives its pool")
		}
		return true
	})
}

func TestPoolWaitsNoLongerThanItsCaller(t *testing.T) {
	p := pool.New(1, func(context.Context) (int, error) { return 1, nil }, func(int) {})
	if _, err := p.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func TestClosedPool(t *testing.T) {
	ended := 0
	p := pool.New(2, func(context.Context) (int, error) { return 1, nil }, func(int) { ended++ })
	g, err := p.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Put(g)
	if _, err := p.Get(t.Context()); !errors.Is(err, pool.ErrClosed) || ended != 1 {
		t.Errorf("error %v, %d instances ended", err, ended)
	}
}

// A panic while an instance is made or ended is the caller's error, and costs
// no place in the pool.
func TestPoolOutlivesPanics(t *testing.T) {
	bad := true
	p := pool.New(1, func(context.Context) (int, error) {
		if bad {
			panic("open")
		}
		return 1, nil
	}, func(int) { panic("close") })
	panics := func(f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		f()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	panics(func() { _, _ = p.Get(ctx) })
	bad = false
	for range 2 {
		g, err := p.Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		panics(func() { p.Discard(g) })
	}
}

// TestPutLast shows that an instance given back so is the last to be given out.
func TestPutLast(t *testing.T) {
	made, closed := 0, 0
	open := func(context.Context) (int, error) { made++; return made, nil }
	p := pool.New(3, open, func(int) { closed++ })
	for range 3 {
		if _, err := p.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.Put(1)
	p.PutLast(2)
	p.Put(3)
	for _, want := range []int{3, 1, 2} {
		if got, err := p.Get(t.Context()); err != nil || got != want {
			t.Errorf("got %d, %v, want %d", got, err, want)
		}
	}
	p.Close()
	if p.PutLast(2); closed != 1 {
		t.Error("an instance given back to a closed pool was not closed")
	}
}

// TestPromote shows that an idle instance becomes the next one, and one in use does not.
func TestPromote(t *testing.T) {
	made := 0
	p := pool.New(3, func(context.Context) (int, error) { made++; return made, nil }, func(int) {})
	for range 3 {
		if _, err := p.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p.Put(1)
	p.Put(2)
	p.Promote(1)
	p.Promote(3)
	for _, want := range []int{1, 2} {
		if got, ok := p.TryGet(); !ok || got != want {
			t.Errorf("got %d, %v, want %d", got, ok, want)
		}
	}
}
