package kube

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Store has what is needed of all objects of a kind, and follows them while Run runs. A list or a watch that fails changes nothing
// in it.
type Store[T any] struct {
	keep    func(runtime.Object) T
	changed chan struct{}

	mu  sync.Mutex
	all map[string]T // by name; nil until all were listed
}

// NewStore makes a store that has of each object what keep returns.
func NewStore[T any](keep func(runtime.Object) T) *Store[T] {
	return &Store[T]{keep: keep, changed: make(chan struct{}, 1)}
}

// Run follows the objects of a kind until ctx is done: those of a namespace, or of the whole cluster if that is empty. kind is an empty
// one of them.
func (s *Store[T]) Run(ctx context.Context, c *rest.RESTClient, namespace, resource string, kind runtime.Object) {
	lw := cache.NewListWatchFromClient(c, resource, namespace, fields.Everything())
	cache.NewReflectorWithOptions(lw, kind, s, cache.ReflectorOptions{Name: resource}).RunWithContext(ctx)
}

// Changed gets an element after a change. Several changes may be one element.
func (s *Store[T]) Changed() <-chan struct{} { return s.changed }

// All returns what there is, by name, and whether it was ever listed: without that nothing follows from what is not there.
func (s *Store[T]) All() (all map[string]T, listed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.all), s.all != nil
}

func (s *Store[T]) change(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Add is called by the Reflector.
func (s *Store[T]) Add(object any) error { return s.Update(object) }

// Update is called by the Reflector.
func (s *Store[T]) Update(object any) error {
	o := object.(runtime.Object)
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	one := s.keep(o)
	s.change(func() { s.all[m.GetName()] = one })
	return nil
}

// Delete is called by the Reflector.
func (s *Store[T]) Delete(object any) error {
	m, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.change(func() { delete(s.all, m.GetName()) })
	return nil
}

// Replace is called by the Reflector with all objects.
func (s *Store[T]) Replace(objects []any, _ string) error {
	all := make(map[string]T, len(objects))
	for _, object := range objects {
		o := object.(runtime.Object)
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		all[m.GetName()] = s.keep(o)
	}
	s.change(func() { s.all = all })
	return nil
}

// Resync is called by the Reflector.
func (s *Store[T]) Resync() error { return nil }
