package intercept

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// syncCaller calls hook Synchronize of one generation of a plugin.
type syncCaller struct {
	*interceptor
	member plugin.Member
	state  *Synchronized
}

// call calls the plugin, with the store's own view of the pod if it has one, and carries
// out what the plugin wants. The error is the plugin's, or ctx's. Wishes of the plugin's earlier generations for the pod end that
// it has not repeated; those for containers if it could, and was told of them.
func (s *syncCaller) call(ctx context.Context, pod *crifield.Pod) error {
	if known, ok := s.Store.Pod(pod.ID); ok {
		pod = crifield.PodOf(known)
	}
	told := s.Store.Containers(pod.ID)
	complete := len(s.Store.IDsByListAlone(pod.ID)) == 0
	m := s.member
	m.Breaker = nil // an event's failure counts once, and a sweep leaves a plugin alone whose breaker is open
	called, err := s.standalone(ctx, new(event), abi.Synchronize, pod, m)
	if err == nil && !called { // its match excludes the pod, or ctx has ended
		err = context.Cause(ctx)
	}
	if err != nil || !complete { // it may not know yet what to ask for
		return err
	}
	containers := !called || mayAskForContainers(&s.member)
	s.Enforcer.Withdraw(ctx, func(of enforce.ID, _ enforce.Target, w enforce.Wish) bool {
		may := of.Container == "" || containers && slices.ContainsFunc(told, func(c pods.Container) bool { return c.ID == of.Container })
		if !may || !s.isEarlier(w) {
			return false
		}
		sandbox, ok := s.Enforcer.Sandbox(of)
		return ok && sandbox == pod.ID
	})
	return nil
}

// mayAskForContainers reports whether a plugin can ask for values of containers in Synchronize, which is an event of the
// pod.
func mayAskForContainers(m *plugin.Member) bool {
	return m.Capabilities.Has(abi.UpdateOthers) && m.Capabilities.Has(abi.StoreRead)
}

// isEarlier reports whether a wish is one of the plugin's earlier generations, which ends with Synchronize.
func (s *syncCaller) isEarlier(w enforce.Wish) bool {
	if w.Hook == abi.Tick && s.member.Hooks.Has(abi.Tick) { // in which the plugin repeats what it asked for there
		return false
	}
	return w.Plugin == s.member.ID && w.Generation != s.Generations[w.Plugin] && !s.state.expects(w.Generation)
}

// earlier returns the IDs of the sandboxes of which the plugin is to be told again, since wishes of an earlier
// generation are there that may end then: a call of that has noted them after the plugin was told, or the runtime
// had not described all containers.
func (s *syncCaller) earlier() map[string]bool {
	all := map[string]bool{}
	s.Ledger.Wishes(func(of enforce.ID, _ enforce.Target, w enforce.Wish) {
		if !s.isEarlier(w) || of.Container != "" && !mayAskForContainers(&s.member) {
			return
		}
		if sandbox, ok := s.Enforcer.Sandbox(of); ok && len(s.Store.IDsByListAlone(sandbox)) == 0 {
			all[sandbox] = true
		}
	})
	return all
}

// errorKeeper keeps a plugin's error, which a chain ignores in hooks that cannot refuse.
type errorKeeper struct {
	plugin.Plugin
	called bool
	err    error
}

// Call implements plugin.Plugin.
func (k *errorKeeper) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	k.called, k.err = true, errPanicked
	k.err = k.Plugin.Call(ctx, budget, ev, adj)
	return k.err
}

// syncedPlugin is a plugin that is synchronized with a pod before the pod's first event.
type syncedPlugin struct {
	plugin.Plugin
	caller *syncCaller
}

// Call implements plugin.Plugin. The event's plugins do not pay for Synchronize with their time, unless it fails, which is the
// event's failure.
func (p *syncedPlugin) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	e, ok := ev.(*event)
	ofPod := ok && e.pod != nil && e.pod.ID != ""
	if !ofPod || e.hook == abi.Synchronize {
		return p.Plugin.Call(ctx, budget, ev, adj)
	}
	var container string
	if e.container != nil {
		container = e.container.ID // "" while it is made
	}
	if store := p.caller.Store; !p.caller.state.isSynced(store, e.pod.ID, container) {
		waited := budget.Wait()
		syncCtx, end := budget.WaitContext(ctx)
		err := p.caller.state.sync(syncCtx, store, e.pod.ID, container, func() error { return p.caller.call(syncCtx, e.pod) })
		end()
		if err != nil {
			return fmt.Errorf("the pod is not synchronized: %w", err)
		}
		waited()
	}
	return p.Plugin.Call(ctx, budget, ev, adj)
}

// trackCreations tells the plugins that the call creates a pod or container, until done is called: the store may hear of it from the
// runtime before the caller does.
func (c *call) trackCreations() (done func()) {
	if c.method.Effect != cri.Makes || len(c.Synchronized) == 0 {
		return func() {}
	}
	var name string
	if carried := c.method.Carries(c.req); c.method.MakesPods() {
		name = enforce.SandboxName(*carried.Pod)
	} else {
		name = nameIn(c.event.pod.ID, *carried.Container)
	}
	track := func(n int) {
		for _, s := range c.Synchronized {
			s.mu.Lock()
			if s.creating[name] += n; s.creating[name] == 0 {
				delete(s.creating, name)
			}
			s.mu.Unlock()
		}
	}
	track(1)
	return func() { track(-1) }
}

// markCreated tells the plugins of a pod or container that the call has created, before the store knows it.
func (c *call) markCreated(resp proto.Message) {
	if c.method.Effect != cri.Makes {
		return
	}
	pod := cri.PodID(resp)
	for _, s := range c.Synchronized {
		s.mu.Lock()
		switch {
		case !c.method.MakesPods():
			s.containers[cri.ContainerID(resp)] = &known{described: true}
		case s.calls[pod] == nil && s.pods[pod] == nil:
			s.pods[pod] = &known{described: true}
		}
		s.mu.Unlock()
	}
}

// nameIn tells the containers of a sandbox apart before they have an ID.
func nameIn(sandbox string, config *runtimeapi.ContainerConfig) string {
	m := config.GetMetadata()
	return sandbox + "/" + m.GetName() + "/" + strconv.FormatUint(uint64(m.GetAttempt()), 10)
}
