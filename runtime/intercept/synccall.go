package intercept

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// syncCaller calls hook Synchronize of one plugin.
type syncCaller struct {
	*interceptor
	member plugin.Member
	state  *Synchronized
}

func newSyncCaller(o Options, m plugin.Member, state *Synchronized) *syncCaller {
	// An event's failure counts for the breaker, which must not count it twice; a
	// sweep leaves a plugin alone whose breaker is open.
	m.Breaker, m.Hooks = nil, m.Hooks&abi.HookSetOf(abi.Synchronize)
	return &syncCaller{interceptor: newInterceptor(o, cri.Method{}), member: m, state: state}
}

// call calls the plugin, with the store's own view of the pod if it has one, and carries
// out what the plugin wants. The error is the plugin's, or ctx's.
func (s *syncCaller) call(ctx context.Context, pod *crifield.Pod) error {
	if known, ok := s.Store.Pod(pod.ID); ok {
		pod = crifield.PodOf(known)
	}
	complete := len(s.Store.IDsByListAlone(pod.ID)) == 0
	kept := &errorKeeper{Plugin: s.member.Plugin}
	m := s.member
	m.Plugin = kept
	start := time.Now()
	e, owned, err := s.standalone(ctx, abi.Synchronize, pod, m)
	if err != nil {
		return err
	}
	if err = kept.err; !kept.called { // its match excludes the pod, or ctx has ended
		err = context.Cause(ctx)
	}
	if err == nil && complete && s.state.isReplacement() { // else it may not know yet what to ask for
		s.endSilent(ctx, e, owned, start, !kept.called || s.mayAskForContainers())
	}
	return err
}

// mayAskForContainers reports whether the plugin can repeat a wish for a container in Synchronize,
// which is an event of the pod.
func (s *syncCaller) mayAskForContainers() bool {
	return s.member.Capabilities.Has(abi.UpdateOthers) && s.member.Capabilities.Has(abi.StoreRead)
}

// endSilent ends the wishes of the plugin's earlier version for a pod that the plugin has not
// repeated, and those for its containers, too, if containers says so.
func (s *syncCaller) endSilent(ctx context.Context, e *event, owned []plugin.Owned, start time.Time, containers bool) {
	type wanted struct {
		of     ledger.ID
		target ledger.Target
	}
	repeated := map[wanted]bool{}
	for _, o := range owned {
		if o.Change.Op == plugin.WriteFile {
			repeated[wanted{s.idOf(e.object(o.Change.Object)), ledger.File(o.Change.Key)}] = true
		}
	}
	uid := s.idOf(crifield.Object{Pod: e.pod}).Pod
	s.withdraw(ctx, func(of ledger.ID, t ledger.Target, w ledger.Wish) bool {
		_, file := t.File()
		mayEnd := file && of.Pod == uid && (containers || of.Container == "")
		return mayEnd && w.Plugin == s.member.ID && w.At.Before(start) && !repeated[wanted{of, t}]
	})
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
	state  *Synchronized
	caller *syncCaller
}

// Call implements plugin.Plugin.
func (p *syncedPlugin) Call(ctx context.Context, budget *plugin.Budget, ev plugin.Event, adj *plugin.Adjustment) error {
	e, ok := ev.(*event)
	if ok && e.pod != nil && e.pod.ID != "" && e.hook != abi.Synchronize {
		if err := p.ensureSynced(ctx, budget, e.pod); err != nil {
			return fmt.Errorf("the pod is not synchronized: %w", err)
		}
	}
	return p.Plugin.Call(ctx, budget, ev, adj)
}

// ensureSynced calls Synchronize for a pod that the plugin does not know. The event's plugins
// do not pay for that with their time, unless it fails, which is the event's failure.
func (p *syncedPlugin) ensureSynced(ctx context.Context, budget *plugin.Budget, pod *crifield.Pod) error {
	if p.state.isSynced(p.caller.Store, pod.ID) {
		return nil
	}
	wait := budget.Wait()
	ctx, end := budget.WaitContext(ctx)
	defer end()
	err := p.state.sync(ctx, p.caller.Store, pod.ID, func() error { return p.caller.call(ctx, pod) })
	if err == nil {
		budget.Waited(wait)
	}
	return err
}

// trackCreations tells the plugins that the call creates a pod, until done is called.
func (c *call) trackCreations() (done func()) {
	if !c.method.MakesPods() || len(c.Synchronized) == 0 {
		return func() {}
	}
	name := nameOf(*c.method.Carries(c.req).Pod)
	track := func(n int) {
		for _, s := range c.Synchronized {
			s.trackCreation(name, n)
		}
	}
	track(1)
	return func() { track(-1) }
}

// markCreated tells the plugins of a pod that the call has created, before the store knows it.
func (c *call) markCreated(resp proto.Message) {
	if c.method.MakesPods() {
		for _, s := range c.Synchronized {
			s.markCreated(cri.PodID(resp))
		}
	}
}

// nameOf tells the sandboxes of a node apart before they have an id.
func nameOf(config *runtimeapi.PodSandboxConfig) string {
	m := config.GetMetadata()
	return fmt.Sprint(m.GetUid(), "/", m.GetNamespace(), "/", m.GetName(), "/", m.GetAttempt())
}
