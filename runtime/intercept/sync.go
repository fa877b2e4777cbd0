package intercept

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// forgetAfter is how long a pod or container is remembered at least after a sweep has not found it in the store: the last
// events of a removed pod must not begin with Synchronize.
const forgetAfter = time.Minute

var errPanicked = errors.New("the plugin panicked")

// Synchronized is the synchronization of one generation of a plugin: the pods and containers that hook Synchronize has
// told it of, and those that it could see being created. It lives as long as the generation, over the chains that
// this is in. Its methods are safe for concurrent use.
type Synchronized struct {
	mu         sync.Mutex
	calls      map[string]*syncCall // under way, by the pod's id
	pods       map[string]*known    // by id
	containers map[string]*known    // by id, which may be that of the pod, too
	creating   map[string]int       // pods and containers that are being created now, by enforce.SandboxName and nameIn
	next       string               // see Expect
}

// known is a pod or container that the plugin was told of, or could see being created.
type known struct {
	described bool      // and not known to the proxy by the runtime's list alone
	gone      time.Time // when a sweep did not find it in the store; zero: it is there, or no sweep has looked
}

// syncCall calls the plugin for one pod. Callers that have waited for done read err and left.
type syncCall struct {
	done chan struct{} // closed at its end
	err  error
	left bool // its caller's time ended before the plugin had answered

	pod        *known            // the pod and those containers, known if the plugin does not fail
	containers map[string]*known // by id
}

// NewSynchronized returns the state of a generation that knows no pod.
func NewSynchronized() *Synchronized {
	return &Synchronized{
		calls: map[string]*syncCall{}, pods: map[string]*known{}, containers: map[string]*known{}, creating: map[string]int{},
	}
}

// Expect names the generation that is to take the place of this one, and may be told of pods already: its wishes are not those of an
// earlier one. "" is no generation.
func (s *Synchronized) Expect(generation string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = generation
}

func (s *Synchronized) expects(generation string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next != "" && s.next == generation
}

// Member returns m such that Synchronize is called for a pod before the pod's first event.
// Events of the pod wait meanwhile. If the plugin fails in Synchronize, it has failed at
// the event, and the next event calls Synchronize again. The options are those of the chain.
func (s *Synchronized) Member(o Options, m plugin.Member) plugin.Member {
	m.Plugin = &syncedPlugin{m.Plugin, &syncCaller{&interceptor{Options: o}, m, s}}
	return m
}

// Sweep calls Synchronize of the member for all pods of the store that its plugin does not know, or not with all of
// their containers, and for those in which an earlier generation still has values that may end. A container that the
// runtime could not describe counts once it has. Sweep ends with the first error, or after the pod with which enough,
// if it is not nil, reports true; left is the number of pods that remain. The member is one of the plugin's own, without
// what Member does to it.
func (s *Synchronized) Sweep(ctx context.Context, o Options, m plugin.Member, enough func() bool) (left int, err error) {
	all := o.Store.Pods()
	caller := &syncCaller{&interceptor{Options: o}, m, s}
	earlier := caller.earlier()
	s.forget(o.Store)
	for i, p := range all {
		if !s.lacks(o.Store, p, earlier[p.ID]) {
			continue
		}
		if err := s.sync(ctx, o.Store, p.ID, "", func() error { return caller.call(ctx, crifield.PodOf(p)) }); err != nil {
			return len(all) - i, err
		}
		if enough != nil && enough() {
			return len(all) - i - 1, nil
		}
	}
	return 0, nil
}

// sync runs call if the plugin does not know the pod as the store does, or this container of it, if that is not "". Other
// callers wait meanwhile. If the one that they waited for ended because its own caller went away or had less time, or before this
// container was there, they begin anew.
func (s *Synchronized) sync(ctx context.Context, store *pods.Store, id, container string, call func() error) error {
	for {
		c, first := s.begin(store, id, container)
		if c == nil {
			return nil
		}
		if first {
			defer func() { s.finish(id, c) }()
			c.err = call()
			c.left = c.err != nil && ctx.Err() != nil
			return c.err
		}
		select {
		case <-c.done: // that counts, whatever ctx says
		default:
			select {
			case <-c.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if c.err == nil && container != "" && !s.isSynced(store, id, container) {
			continue
		}
		if left := c.left || errors.Is(c.err, context.Canceled); !left || ctx.Err() != nil {
			return c.err
		}
	}
}

// begin returns the call that is to be waited for, and whether the caller is the one to make it; nil if there is nothing to tell.
func (s *Synchronized) begin(store *pods.Store, id, container string) (c *syncCall, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.calls[id]; c != nil {
		return c, false
	}
	containers := s.toTell(store, id)
	if !s.outdated(store, id, append(containers, container)) {
		return nil, false
	}
	c = &syncCall{done: make(chan struct{}), err: errPanicked, pod: &known{described: store.Described(id)}, containers: map[string]*known{}}
	if container != "" {
		c.containers[container] = new(known)
	}
	for _, id := range containers {
		c.containers[id] = &known{described: true}
	}
	s.calls[id] = c
	delete(s.pods, id)
	return c, true
}

func (s *Synchronized) finish(id string, c *syncCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
	if c.err == nil {
		s.pods[id] = c.pod
		maps.Copy(s.containers, c.containers)
	}
	close(c.done)
}

// isSynced reports whether the plugin knows the pod by now, as the store does, and a container of it; "" is no container.
func (s *Synchronized) isSynced(store *pods.Store, id, container string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.outdated(store, id, []string{container})
}

// outdated reports whether the plugin does not know the pod or one of these containers, or the runtime has described it since: the
// plugin could not read what lists leave out. Synchronized.mu guards it.
func (s *Synchronized) outdated(store *pods.Store, id string, containers []string) bool {
	lacks := func(k *known, id string) bool { return k == nil || !k.described && store.Described(id) }
	return lacks(s.pods[id], id) || slices.ContainsFunc(containers, func(container string) bool {
		return container != "" && lacks(s.containers[container], container)
	})
}

// lacks reports whether the plugin does not know a pod, or not with its containers, but for what it sees being created. again has it
// told of the pod once more, unless it is being told.
func (s *Synchronized) lacks(store *pods.Store, p pods.Pod, again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again {
		delete(s.pods, p.ID)
	}
	return s.creating[enforce.SandboxName(p.Config)] == 0 && s.outdated(store, p.ID, s.toTell(store, p.ID))
}

// toTell returns the IDs of the containers of a pod that the runtime has described, but for those that the plugin sees being created.
// Synchronized.mu guards it.
func (s *Synchronized) toTell(store *pods.Store, id string) (ids []string) {
	for _, c := range store.Containers(id) {
		if !c.ByListAlone() && s.creating[nameIn(id, c.Config)] == 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// forget drops the pods and containers that have gone.
func (s *Synchronized) forget(store *pods.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	old := func(there bool, gone *time.Time) bool {
		switch {
		case there:
			*gone = time.Time{}
		case gone.IsZero():
			*gone = now
		default:
			return now.Sub(*gone) > forgetAfter
		}
		return false
	}
	maps.DeleteFunc(s.pods, func(id string, k *known) bool {
		_, there := store.Pod(id)
		return old(there, &k.gone)
	})
	maps.DeleteFunc(s.containers, func(id string, k *known) bool {
		_, there := store.Container(id)
		return old(there, &k.gone)
	})
}
