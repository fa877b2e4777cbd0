package intercept

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// forgetAfter is how long a pod that the store no longer has is remembered: the
// last events of a removed pod must not begin with Synchronize.
const forgetAfter = 10 * time.Minute

var errPanicked = errors.New("the plugin panicked")

// Synchronized is what one loaded plugin with hook Synchronize knows: the pods
// that it was told of, and those whose making it could see. It lives as long as
// the plugin, over the chains that the plugin is in. Its methods are safe for
// concurrent use.
type Synchronized struct {
	mu     sync.Mutex
	pods   map[string]*knowledge // by id
	making map[string]int        // pods that are being made right now, by nameOf
}

// knowledge of one pod. err is for who waited for done.
type knowledge struct {
	done chan struct{} // closed when the plugin knows the pod, or has failed
	err  error

	// Guarded by Synchronized.mu:
	settled bool      // done is closed, and the plugin knows the pod
	seen    time.Time // when the pod was known to exist last
}

// NewSynchronized returns what a plugin knows that was just loaded: nothing.
func NewSynchronized() *Synchronized {
	return &Synchronized{pods: map[string]*knowledge{}, making: map[string]int{}}
}

// Member returns m such that its plugin is told of a pod before it gets the
// pod's first event. Events of the pod wait meanwhile; if the plugin fails there,
// it has failed at the event, and is told anew at the next one. The options are
// those of the chain.
func (s *Synchronized) Member(o Options, m plugin.Member) plugin.Member {
	m.Plugin = &synchronizing{Plugin: m.Plugin, known: s, teller: newTeller(o, m)}
	return m
}

type synchronizing struct {
	plugin.Plugin
	known  *Synchronized
	teller *teller
}

// Call implements plugin.Plugin.
func (p *synchronizing) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	e, ok := ev.(*event)
	if ok && e.pod != nil && e.pod.ID != "" && e.hook != abi.Synchronize {
		if err := p.tellFirst(ctx, budget, e.pod); err != nil {
			return fmt.Errorf("the pod is not synchronized: %w", err)
		}
	}
	return p.Plugin.Call(ctx, budget, ev, adj)
}

// tellFirst tells the plugin of a pod that it does not know. The event's plugins do
// not pay for that with their time, unless it fails, which is the event's failure.
func (p *synchronizing) tellFirst(ctx context.Context, budget *plugin.Budget, pod *crifield.Pod) error {
	if p.known.knows(pod.ID) {
		return nil
	}
	wait := budget.Wait()
	ctx, end := budget.WaitContext(ctx)
	defer end()
	err := p.known.once(ctx, pod.ID, func() error { return p.teller.tell(ctx, pod) })
	if err == nil {
		budget.Waited(wait)
	}
	return err
}

// Sweep tells the member's plugin of all pods of the store that it does not know,
// and ends with the first error, or after the pod with which enough, if it is not nil,
// reports true; left is how many pods it has not come to. The member is one of the plugin's own, without
// what Member does to it.
func (s *Synchronized) Sweep(ctx context.Context, o Options, m plugin.Member, enough func() bool) (left int, err error) {
	all := o.Store.Pods()
	s.forget(all)
	t := newTeller(o, m)
	for i, p := range all {
		if s.isMade(p) || s.knows(p.ID) {
			continue
		}
		if err := s.once(ctx, p.ID, func() error { return t.tell(ctx, crifield.PodOf(p)) }); err != nil {
			return len(all) - i, err
		}
		if enough != nil && enough() {
			return len(all) - i - 1, nil
		}
	}
	return 0, nil
}

// once runs tell if the plugin does not know the pod. Who comes meanwhile waits. If
// what it waited for ended because that one's caller went away, it begins anew.
func (s *Synchronized) once(ctx context.Context, id string, tell func() error) error {
	for {
		k, first := s.enter(id)
		if first {
			defer func() { s.settle(id, k) }()
			k.err = tell()
			return k.err
		}
		if err := await(ctx, k.done); err != nil {
			return err
		}
		if !errors.Is(k.err, context.Canceled) || ctx.Err() != nil {
			return k.err
		}
	}
}

// knows reports whether the plugin knows the pod by now.
func (s *Synchronized) knows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.pods[id]
	return k != nil && k.settled
}

// enter returns what is known of the pod, and whether the caller is the one to find out.
func (s *Synchronized) enter(id string) (k *knowledge, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k = s.pods[id]; k != nil {
		return k, false
	}
	k = &knowledge{done: make(chan struct{}), seen: time.Now(), err: errPanicked}
	s.pods[id] = k
	return k, true
}

func (s *Synchronized) settle(id string, k *knowledge) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.settled = k.err == nil; !k.settled {
		delete(s.pods, id)
	}
	close(k.done)
}

// born notes a pod that was made before the plugin's eyes.
func (s *Synchronized) born(id string) {
	k := &knowledge{done: make(chan struct{}), settled: true, seen: time.Now()}
	close(k.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[id] == nil {
		s.pods[id] = k
	}
}

// make notes that a pod is being made, until the function that it returns is
// called: the store may hear of it from the runtime before the caller does.
func (s *Synchronized) make(name string) (made func()) {
	s.count(name, 1)
	return func() { s.count(name, -1) }
}

func (s *Synchronized) count(name string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.making[name] += n; s.making[name] == 0 {
		delete(s.making, name)
	}
}

func (s *Synchronized) isMade(p pods.Pod) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.making[nameOf(p.Config)] > 0
}

// forget drops what is long gone.
func (s *Synchronized) forget(all []pods.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range all {
		if k := s.pods[p.ID]; k != nil {
			k.seen = now
		}
	}
	for id, k := range s.pods {
		if now.Sub(k.seen) > forgetAfter {
			delete(s.pods, id)
		}
	}
}

// nameOf tells the sandboxes of a node apart before they have an id.
func nameOf(config *runtimeapi.PodSandboxConfig) string {
	m := config.GetMetadata()
	return fmt.Sprint(m.GetUid(), "/", m.GetNamespace(), "/", m.GetName(), "/", m.GetAttempt())
}

// expect notes that the call makes a pod, until the function that it returns is
// called.
func (c *call) expect() (done func()) {
	if !c.makesPod() || len(c.Synchronized) == 0 {
		return func() {}
	}
	var ends []func()
	for _, s := range c.Synchronized {
		ends = append(ends, s.make(nameOf(*c.method.Carries(c.req).Pod)))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// born notes a pod that the call has made, before the store knows it.
func (c *call) born(resp proto.Message) {
	if c.makesPod() {
		for _, s := range c.Synchronized {
			s.born(cri.PodID(resp))
		}
	}
}

func (c *call) makesPod() bool { return c.method.Effect == cri.Makes && c.method.Object == abi.Pod }
