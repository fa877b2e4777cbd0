package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Options are what a simulation has besides its event.
type Options struct {
	ID     string               // the plugin's, as the file name gives it
	Config string               // in place of the event's, if it is not ""
	Grant  abi.CapabilitySet    // beside the default and the event's
	Bounds plugin.GrantBounds   // of Grant
	Beside string               // the name of the JSON that grants more
	Match  abi.Match            // the operator's
	Policy plugin.FailurePolicy // of the plugin: what becomes of the call if it fails
	// ShowSecrets shows values of environment variables and registry credentials, which
	// nothing that is returned has else.
	ShowSecrets bool
	Quiet       bool // no events are kept, so that Call can be measured; Run needs them
	Load        Loader
}

// Loader makes the plugin. It gives the options' observer to it.
type Loader func(LoadOptions) (plugin.Plugin, error)

// LoadOptions are what the simulator has a plugin loaded with.
type LoadOptions struct {
	Config   string
	Granted  abi.CapabilitySet
	Features []abi.Feature
	Observer observe.Observer
	KV       *plugin.KV
	Metrics  *plugin.Metrics
}

// Simulator is a plugin in front of a backend in memory, with the event ready to come. It
// is for one goroutine. The caller closes it.
type Simulator struct {
	event   *Event
	shown   bool // Options.ShowSecrets
	policy  plugin.FailurePolicy
	plugin  plugin.Plugin
	player  *player // of the plugin
	member  plugin.Member
	earlier *earlierPlugin // nil if the event has none
	loaded  LoadOptions
	held    *enforce.Ledger // what the plugin wants since the events before; nil if there are none
	tree    *tree           // nil on a node without cgroup files
	backend *backend
	events  *observe.Recorder
	store   *pods.Store
	queue   *workqueue.Queue
	options intercept.Options
	route   cri.Router
	frame   *cri.Frame // the event's request
	answer  *cri.Frame
	sent    *cri.Frame // what the backend got; nil if nothing
}

// Open loads the plugin, lets the events before happen, and makes what the event finds. The error is of
// type *LoadError if it is the plugin's.
func Open(ctx context.Context, e *Event, o Options) (_ *Simulator, err error) {
	s := &Simulator{
		event: e, shown: o.ShowSecrets, policy: o.Policy, backend: &backend{},
		events: &observe.Recorder{}, store: storeOf(e.Before), queue: workqueue.New(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(ctx))
		}
	}()
	if err := s.load(ctx, o); err != nil {
		return nil, err
	}

	// The plugin is a member of the chain, in the event's hook alone.
	manifest, hook := s.plugin.Manifest(), e.Hook
	if !manifest.HookSet().Has(hook) {
		hooks := strings.Join(manifest.HookSet().Names(), ", ")
		err := fmt.Errorf("plugin %s has no hook %v; its hooks are %s", manifest.Name, hook, hooks)
		return nil, &LoadError{err, lines(s.events.Take())}
	}
	s.player = &player{Plugin: s.plugin, event: e, quiet: o.Quiet}
	rights := plugin.RightsOf(manifest, s.loaded.Granted, o.Beside)
	rights.Bounds = o.Bounds
	s.member = plugin.Member{
		ID: o.ID, Plugin: s.player, Policy: o.Policy, Hooks: abi.HookSetOf(hook), Capabilities: rights.Has(), Rights: rights,
		Bounds: plugin.BoundsOf(o.Match),
	}
	for _, wanted := range manifest.Hooks {
		if wanted.Hook == hook.String() {
			s.member.Match = s.member.Match.And(s.member.Hooks, wanted.Match).And(s.member.Hooks, o.Match)
		}
	}

	if e.Node.CgroupVersion > 0 {
		if err := s.makeTree(); err != nil {
			return nil, err
		}
	}
	return s, s.connect()
}

// storeOf returns what the store knows after these calls.
func storeOf(calls []Call) *pods.Store {
	store := pods.NewStore()
	for _, c := range calls {
		store.Observe(nil, proto.Clone(c.Request), c.Response)
	}
	return store
}

// LoadError is why a plugin was not loaded, with the lines that it logged.
type LoadError struct {
	Err   error
	Lines []string
}

func (e *LoadError) Error() string { return e.Err.Error() }
func (e *LoadError) Unwrap() error { return e.Err }

// load loads the plugin. If the event has events before it, these happen, and it is taken as they leave it.
func (s *Simulator) load(ctx context.Context, o Options) (err error) {
	if s.event.Previous != nil {
		before, err := Open(ctx, s.event.Previous, o)
		if err != nil {
			return err
		}
		if _, err = before.Run(ctx); err == nil {
			s.plugin, s.loaded, s.events, s.held = before.plugin, before.loaded, before.events, before.options.Ledger
			before.plugin = nil
		}
		return errors.Join(err, before.Close(ctx))
	}
	s.loaded = LoadOptions{
		Config: o.Config, Granted: s.event.Grant | o.Grant, Features: plugin.Features(s.event.Node.CgroupVersion),
		Observer: s.events, KV: plugin.NewKV(), Metrics: plugin.NewMetrics(),
	}
	if o.Quiet {
		s.loaded.Observer = observe.Discard()
	}
	if o.Config == "" {
		s.loaded.Config = s.event.Config
	}
	kept := s.loaded.KV.Begin()
	for key, value := range s.event.KV {
		if errno := kept.Set(key, value); errno != abi.OK {
			return fmt.Errorf("kv: %q: %w", key, errno)
		}
	}
	if err := kept.Commit(); err != nil {
		return err
	}
	if s.plugin, err = o.Load(s.loaded); err != nil {
		return &LoadError{err, lines(s.events.Take())}
	}
	return nil
}

// connect makes the routes of the plugin, and of the one before it.
func (s *Simulator) connect() (err error) {
	s.options = intercept.Options{
		Enforcer: enforce.Enforcer{
			Observer: s.loaded.Observer, Store: s.store, Backend: s.backend,
			Node: &s.event.Node, Queue: s.queue, Ledger: enforce.NewLedger(),
		},
		Keep: func() func() { return func() {} }, ShowSecrets: s.shown, Images: pods.NewImages(images(s.event.Digests)),
		CallTime: intercept.DefaultCallTime,
		NewChain: func(members ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(s.loaded.Observer, s.event.Node.CgroupVersion, members...)
		},
	}
	if s.tree != nil {
		s.options.Cgroups = s.tree.fs
	}
	if s.held != nil { // what it wanted at the end of the events before; nothing of it is written yet, and the event finds files as it says
		s.held.Wishes(func(id enforce.ID, t enforce.Target, w enforce.Wish) {
			s.options.Ledger.Record(id).Ask(enforce.Asked{Target: t, Wish: w})
		})
	}
	members := []plugin.Member{s.member}
	if len(s.event.Earlier) > 0 {
		s.earlier = &earlierPlugin{changes: s.event.Earlier}
		members = []plugin.Member{{ID: "earlier", Plugin: s.earlier, Hooks: s.member.Hooks, Capabilities: abi.AllCapabilities}, s.member}
	}
	s.options.Chain = s.options.NewChain(members...)
	s.route = intercept.Router(s.options)
	if call := s.event.Call; call.Method != nil {
		if s.frame, err = cri.NewFrame(call.Request); err == nil {
			s.answer, err = cri.NewFrame(call.Response)
		}
	}
	return err
}

// Call lets the event happen, with its post hook, and returns what kubelet would be
// answered. It may be called again.
func (s *Simulator) Call(ctx context.Context) error {
	switch s.event.Hook {
	case abi.Tick:
		intercept.Tick(ctx, s.options, s.member, "")
		return nil
	case abi.Synchronize:
		defer s.queue.Drain(ctx)
		_, err := intercept.NewSynchronized().Sweep(ctx, s.options, s.member, nil)
		return err
	}
	return s.send(ctx, s.event.Call.Method.Name, s.frame, func(_ context.Context, out *cri.Frame) (*cri.Frame, error) {
		s.sent = out
		return s.answer, nil
	})
}

func (s *Simulator) send(ctx context.Context, method string, frame *cri.Frame, next cri.Next) error {
	intercept := s.route(method)
	if intercept == nil {
		return fmt.Errorf("nothing intercepts %s", method)
	}
	_, err := intercept(ctx, &cri.Call{Request: frame}, next)
	return errors.Join(err, s.queue.Drain(ctx))
}

// Close frees what the simulator holds.
func (s *Simulator) Close(ctx context.Context) error {
	var errs []error
	if s.plugin != nil {
		errs = append(errs, s.plugin.Close(ctx))
	}
	if s.tree != nil {
		errs = append(errs, s.tree.fs.Close(), os.RemoveAll(s.tree.Dir))
	}
	return errors.Join(errs...)
}
