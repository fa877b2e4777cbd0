package intercept

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// forgetAfter is how long a pod that the store no longer has is remembered: the
// last events of a removed pod must not begin with Synchronize.
const forgetAfter = 10 * time.Minute

var errPanicked = errors.New("the plugin panicked")

// Synchronized is the synchronization of one loaded plugin with hook Synchronize: the pods
// that it was called for, and those that it could see being created. It lives as long as
// the plugin, over the chains that the plugin is in. Its methods are safe for concurrent use.
type Synchronized struct {
	mu       sync.Mutex
	pods     map[string]*podSyncState // by id
	creating map[string]int           // pods that are being created now, by nameOf
	replaces bool                     // another version of the plugin, whose wishes end unless this one repeats them
}

// podSyncState is that of one pod. err is for whoever waited for done.
type podSyncState struct {
	done chan struct{} // closed when the plugin was called for the pod
	err  error

	// Guarded by Synchronized.mu:
	synced bool      // done is closed, and the plugin has not failed
	byList []string  // of the pod and its containers, the IDs of those that the store knew by a list alone
	seen   time.Time // when the pod was known to exist last
}

// NewSynchronized returns the state of a plugin that was just loaded: it knows no pod.
func NewSynchronized() *Synchronized {
	return &Synchronized{pods: map[string]*podSyncState{}, creating: map[string]int{}}
}

// Replaces says that another version of the plugin was active until now. What that wanted in
// cgroup files of a pod, and this one does not ask for in Synchronize, is undone.
func (s *Synchronized) Replaces() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaces = true
}

func (s *Synchronized) isReplacement() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaces
}

// Member returns m such that Synchronize is called for a pod before the pod's first event.
// Events of the pod wait meanwhile. If the plugin fails in Synchronize, it has failed at
// the event, and the next event calls Synchronize again. The options are those of the chain.
func (s *Synchronized) Member(o Options, m plugin.Member) plugin.Member {
	m.Plugin = &syncedPlugin{Plugin: m.Plugin, state: s, caller: newSyncCaller(o, m, s)}
	return m
}

// Sweep calls Synchronize of the member for all pods of the store that its plugin does not
// know, or that the runtime has described since. It ends with the first error, or after the pod with which enough, if it is not nil,
// reports true; left is the number of pods that remain. The member is one of the plugin's own,
// without what Member does to it.
func (s *Synchronized) Sweep(ctx context.Context, o Options, m plugin.Member, enough func() bool) (left int, err error) {
	all := o.Store.Pods()
	s.forget(all)
	caller := newSyncCaller(o, m, s)
	for i, p := range all {
		if s.isBeingCreated(p) || s.isSynced(o.Store, p.ID) {
			continue
		}
		if err := s.sync(ctx, o.Store, p.ID, func() error { return caller.call(ctx, crifield.PodOf(p)) }); err != nil {
			return len(all) - i, err
		}
		if enough != nil && enough() {
			return len(all) - i - 1, nil
		}
	}
	return 0, nil
}

// sync runs call if the plugin does not know the pod as the store does. Other callers wait meanwhile. If the one
// that they waited for ended because its own caller went away, they begin anew.
func (s *Synchronized) sync(ctx context.Context, store *pods.Store, id string, call func() error) error {
	for {
		p, first := s.begin(store, id)
		if first {
			defer func() { s.finish(id, p) }()
			p.err = call()
			return p.err
		}
		if err := await(ctx, p.done); err != nil {
			return err
		}
		if !errors.Is(p.err, context.Canceled) || ctx.Err() != nil {
			return p.err
		}
	}
}

// begin returns the state of the pod, and whether the caller is the one to call the plugin.
func (s *Synchronized) begin(store *pods.Store, id string) (p *podSyncState, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.pods[id]; p != nil && !(p.synced && s.outdated(p, store, id)) {
		return p, false
	}
	p = &podSyncState{done: make(chan struct{}), byList: store.IDsByListAlone(id), seen: time.Now(), err: errPanicked}
	s.pods[id] = p
	return p, true
}

func (s *Synchronized) finish(id string, p *podSyncState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.synced = p.err == nil; !p.synced {
		delete(s.pods, id)
	}
	close(p.done)
}

// isSynced reports whether the plugin knows the pod by now, as the store does.
func (s *Synchronized) isSynced(store *pods.Store, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[id]
	return p != nil && p.synced && !s.outdated(p, store, id)
}

// outdated reports whether the runtime has described since what it had only listed when the plugin
// was called for the pod: the plugin could not read what lists leave out. What has gone since does not
// count, but for a version that replaces another: the other's wishes ended only if nothing was left
// out. Synchronized.mu guards it.
func (s *Synchronized) outdated(p *podSyncState, store *pods.Store, id string) bool {
	if len(p.byList) == 0 {
		return false
	}
	if slices.ContainsFunc(p.byList, store.Described) {
		return true
	}
	_, known := store.Pod(id)
	return s.replaces && known && len(store.IDsByListAlone(id)) == 0
}

// markCreated says that the plugin could see the pod being created.
func (s *Synchronized) markCreated(id string) {
	p := &podSyncState{done: make(chan struct{}), synced: true, seen: time.Now()}
	close(p.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[id] == nil {
		s.pods[id] = p
	}
}

// trackCreation says that a pod is being created, with 1, and not any more, with -1: the store
// may hear of it from the runtime before the caller does.
func (s *Synchronized) trackCreation(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creating[name] += n; s.creating[name] == 0 {
		delete(s.creating, name)
	}
}

func (s *Synchronized) isBeingCreated(p pods.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.creating[nameOf(p.Config)] > 0
}

// forget drops the pods that are long gone.
func (s *Synchronized) forget(all []pods.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range all {
		if known := s.pods[p.ID]; known != nil {
			known.seen = now
		}
	}
	for id, p := range s.pods {
		if now.Sub(p.seen) > forgetAfter {
			delete(s.pods, id)
		}
	}
}
