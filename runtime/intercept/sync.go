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
	pods       map[string]*podSyncState   // by id
	containers map[string]*knownContainer // by id
	creating   map[string]int             // pods and containers that are being created now, by enforce.SandboxName and nameIn
	next       string                     // see Expect
}

// knownContainer is a container that the plugin was told of, or could see being created.
type knownContainer struct {
	described bool      // and not known to the proxy by the runtime's list alone
	gone      time.Time // when a sweep did not find it in the store; zero: it is there, or no sweep has looked
}

// podSyncState is that of one pod. Callers that have waited for done read err and left.
type podSyncState struct {
	done chan struct{} // closed when the plugin was called for the pod
	err  error
	left bool // its caller's time ended before the plugin had answered

	// Guarded by Synchronized.mu:
	synced     bool      // done is closed, and the plugin has not failed
	described  bool      // the runtime had described the pod by then
	containers []string  // IDs of those that it had described by then
	listed     string    // ID of the event's container, if it had not; "": there is none
	gone       time.Time // as in knownContainer
}

// NewSynchronized returns the state of a generation that knows no pod.
func NewSynchronized() *Synchronized {
	return &Synchronized{pods: map[string]*podSyncState{}, containers: map[string]*knownContainer{}, creating: map[string]int{}}
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
	m.Plugin = &syncedPlugin{m.Plugin, newSyncCaller(o, m, s)}
	return m
}

// Sweep calls Synchronize of the member for all pods of the store that its plugin does not know, or not with all of
// their containers, and for those in which an earlier generation still has values that may end. A container that the
// runtime could not describe counts once it has. Sweep ends with the first error, or after the pod with which enough,
// if it is not nil, reports true; left is the number of pods that remain. The member is one of the plugin's own, without
// what Member does to it.
func (s *Synchronized) Sweep(ctx context.Context, o Options, m plugin.Member, enough func() bool) (left int, err error) {
	all := o.Store.Pods()
	caller := newSyncCaller(o, m, s)
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
		p, first := s.begin(store, id, container)
		if first {
			defer func() { s.finish(id, p) }()
			p.err = call()
			p.left = p.err != nil && ctx.Err() != nil
			return p.err
		}
		select {
		case <-p.done: // that counts, whatever ctx says
		default:
			select {
			case <-p.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if p.err == nil && container != "" && !s.isSynced(store, id, container) {
			continue
		}
		if left := p.left || errors.Is(p.err, context.Canceled); !left || ctx.Err() != nil {
			return p.err
		}
	}
}

// begin returns the state of the pod, and whether the caller is the one to call the plugin.
func (s *Synchronized) begin(store *pods.Store, id, container string) (p *podSyncState, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	containers := s.toTell(store, id)
	if p = s.pods[id]; p != nil && !(p.synced && s.outdated(p, store, id, append(containers, container))) {
		return p, false
	}
	p = &podSyncState{done: make(chan struct{}), described: store.Described(id), containers: containers, err: errPanicked}
	if !slices.Contains(containers, container) {
		p.listed = container
	}
	s.pods[id] = p
	return p, true
}

func (s *Synchronized) finish(id string, p *podSyncState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.synced = p.err == nil; !p.synced {
		delete(s.pods, id)
	} else {
		if p.listed != "" {
			s.containers[p.listed] = &knownContainer{}
		}
		for _, container := range p.containers {
			s.containers[container] = &knownContainer{described: true}
		}
	}
	p.containers = nil
	close(p.done)
}

// isSynced reports whether the plugin knows the pod by now, as the store does, and a container of it; "" is no container.
func (s *Synchronized) isSynced(store *pods.Store, id, container string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[id]
	return p != nil && p.synced && !s.outdated(p, store, id, []string{container})
}

// outdated reports whether the plugin was not told of one of these containers, or the runtime has described it or the pod
// since: the plugin could not read what lists leave out. Synchronized.mu guards it.
func (s *Synchronized) outdated(p *podSyncState, store *pods.Store, id string, containers []string) bool {
	unknown := func(container string) bool {
		c, known := s.containers[container]
		if container == "" || known && c.described {
			return false
		}
		return !known || store.Described(container)
	}
	return !p.described && store.Described(id) || slices.ContainsFunc(containers, unknown)
}

// describedIn returns the IDs of the containers of a pod that the runtime has described.
func describedIn(store *pods.Store, id string) (ids []string) {
	for _, c := range store.Containers(id) {
		if !c.ByListAlone() {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// lacks reports whether the plugin does not know a pod, or not with its containers, but for what it sees being created. again has it
// told of the pod once more, unless it is being told.
func (s *Synchronized) lacks(store *pods.Store, p pods.Pod, again bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.pods[p.ID]
	if again && known != nil && known.synced {
		delete(s.pods, p.ID)
		known = nil
	}
	if s.creating[enforce.SandboxName(p.Config)] > 0 {
		return false
	}
	return known == nil || !known.synced || s.outdated(known, store, p.ID, s.toTell(store, p.ID))
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

// markPod says that the plugin could see the pod being created.
func (s *Synchronized) markPod(id string) {
	p := &podSyncState{done: make(chan struct{}), synced: true, described: true}
	close(p.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[id] == nil {
		s.pods[id] = p
	}
}

// markContainer is markPod for a container.
func (s *Synchronized) markContainer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.containers[id] = &knownContainer{described: true}
}

// trackCreation says that a pod or container is being created, with 1, and not any more, with -1: the store
// may hear of it from the runtime before the caller does.
func (s *Synchronized) trackCreation(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creating[name] += n; s.creating[name] == 0 {
		delete(s.creating, name)
	}
}

// forget drops the pods and containers that have gone.
func (s *Synchronized) forget(store *pods.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	old := func(known bool, gone *time.Time) bool {
		switch {
		case known:
			*gone = time.Time{}
		case gone.IsZero():
			*gone = now
		default:
			return now.Sub(*gone) > forgetAfter
		}
		return false
	}
	maps.DeleteFunc(s.pods, func(id string, p *podSyncState) bool {
		_, known := store.Pod(id)
		return old(known, &p.gone)
	})
	maps.DeleteFunc(s.containers, func(id string, c *knownContainer) bool {
		_, known := store.Container(id)
		return old(known, &c.gone)
	})
}
