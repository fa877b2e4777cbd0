package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/fixture"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Options are what a rehearsal has besides its event.
type Options struct {
	ID     string               // the plugin's, as the file name gives it
	Config string               // in place of the event's, if it is not ""
	Grant  abi.CapabilitySet    // beside the default and the event's
	Beside string               // the name of the JSON that grants more
	Match  abi.Match            // the operator's
	Policy plugin.FailurePolicy // of the plugin: what becomes of the call if it fails
	// ShowSecrets shows values of environment variables and registry credentials, which
	// nothing that is returned has else.
	ShowSecrets bool
	// Load makes the plugin. The options' log must get all that is said of it.
	Load func(fixture.Options) (plugin.Plugin, error)
}

// Rig is a plugin in front of a backend in memory, with the event ready to come. It
// is for one goroutine. The caller closes it.
type Rig struct {
	event    *Event
	shown    bool // Options.ShowSecrets
	policy   plugin.FailurePolicy
	plugin   plugin.Plugin
	member   plugin.Member
	kept     fixture.Options
	tree     *tree
	backend  *backend
	heard    *heard
	store    *pods.Store
	turns    *intercept.Turns
	options  intercept.Options
	route    cri.Router
	frame    *cri.Frame // the event's request
	answer   *cri.Frame
	sent     *cri.Frame // what the backend got; nil if nothing
	outcomes outcomes
}

// outcomes are what the chain tells of each call of the plugin.
type outcomes struct {
	mu  sync.Mutex
	all []plugin.Outcome
}

func (o *outcomes) observe(of plugin.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, of)
}

// Open loads the plugin and makes what the event finds. The error is of type
// *LoadError if it is the plugin's.
func Open(ctx context.Context, e *Event, o Options) (_ *Rig, err error) {
	r := &Rig{event: e, shown: o.ShowSecrets, policy: o.Policy, backend: &backend{}, heard: &heard{}, store: pods.NewStore(), turns: intercept.NewTurns()}
	if r.tree, err = newTree(max(e.Node.CgroupVersion, 1)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	if err := r.load(o); err != nil {
		return r, err
	}
	for _, c := range e.Before {
		r.store.Observe(nil, proto.Clone(c.Request), c.Response)
	}
	return r, r.connect()
}

// LoadError is why a plugin was not loaded.
type LoadError struct{ Err error }

func (e *LoadError) Error() string { return e.Err.Error() }

// Unwrap returns the plugin's own error.
func (e *LoadError) Unwrap() error { return e.Err }

func (r *Rig) load(o Options) (err error) {
	grant := abi.DefaultGrant() | r.event.Grant | o.Grant
	r.kept = fixture.Options{Config: o.Config, Granted: grant, Features: fixture.Features(r.event.Node.CgroupVersion), Log: slog.New(r.heard), KV: plugin.NewKV(), Metrics: plugin.NewMetrics()}
	if o.Config == "" {
		r.kept.Config = r.event.Config
	}
	draft := r.kept.KV.Begin()
	for key, value := range r.event.KV {
		draft.Set(key, value)
	}
	if err := draft.Commit(); err != nil {
		return err
	}
	if r.plugin, err = o.Load(r.kept); err != nil {
		return &LoadError{err}
	}
	manifest, hook := r.plugin.Manifest(), r.event.Hook
	if !manifest.HookSet().Has(hook) {
		return &LoadError{fmt.Errorf("plugin %s does not want hook %v, but %s", manifest.Name, hook, strings.Join(manifest.HookSet().Names(), ", "))}
	}
	declared, _ := manifest.Declared()
	r.member = plugin.Member{ID: o.ID, Plugin: r.plugin, Policy: r.policy, Hooks: abi.HookSetOf(hook), Capabilities: declared & grant, Rights: plugin.Rights{Declared: declared, Grant: plugin.Grant(declared&^grant|o.Grant, o.Beside)}}
	for _, wanted := range manifest.Hooks {
		if wanted.Hook == hook.String() {
			r.member.Match = r.member.Match.And(r.member.Hooks, wanted.Match).And(r.member.Hooks, o.Match)
		}
	}
	return nil
}

// connect makes the routes of the one plugin.
func (r *Rig) connect() error {
	log := r.kept.Log
	node := &r.event.Node
	var current atomic.Pointer[intercept.Node]
	current.Store(node)
	r.options = intercept.Options{
		Log: log, Store: r.store, Backend: r.backend, Cgroups: r.tree.fs, Node: &current, Turns: r.turns,
		Keep: func() func() { return func() {} }, ShowSecrets: r.shown,
		NewChain: func(members ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(log, r.tree.fs, r.outcomes.observe, members...)
		},
	}
	r.options.Chain = r.options.NewChain(r.member)
	r.route = intercept.Router(r.options)
	if r.event.Call.Request == nil {
		return r.tree.fill(r.store, r.event.Files)
	}
	var err, of error
	r.frame, err = cri.NewFrame(r.event.Call.Request)
	r.answer, of = cri.NewFrame(r.event.Call.Response)
	return errors.Join(err, of, r.tree.fill(r.expected(), r.event.Files))
}

// expected is the store with what the event's call makes: runtimes make its cgroup
// while they answer.
func (r *Rig) expected() *pods.Store {
	later := pods.NewStore()
	for _, c := range append(r.event.Before[:len(r.event.Before):len(r.event.Before)], r.event.Call) {
		switch c.Request.(type) {
		case *runtimeapi.RemoveContainerRequest, *runtimeapi.RemovePodSandboxRequest:
		default:
			later.Observe(nil, proto.Clone(c.Request), c.Response)
		}
	}
	return later
}

// Call lets the event happen, with its post hook, and returns what kubelet would be
// answered. It may be called again.
func (r *Rig) Call(ctx context.Context) error {
	switch r.event.Hook {
	case abi.Tick:
		intercept.Tick(ctx, r.options, r.member)
		return nil
	case abi.Synchronize:
		defer r.turns.Drain(ctx)
		_, err := intercept.NewSynchronized().Sweep(ctx, r.options, r.member, nil)
		return err
	}
	return r.send(ctx, r.event.Call.Method.Name, r.frame, func(_ context.Context, out *cri.Frame) (*cri.Frame, error) {
		r.sent = out
		return r.answer, nil
	})
}

func (r *Rig) send(ctx context.Context, method string, frame *cri.Frame, next cri.Next) error {
	intercept := r.route(method)
	if intercept == nil {
		return fmt.Errorf("nothing intercepts %s", method)
	}
	_, err := intercept(ctx, frame, next)
	return errors.Join(err, r.turns.Drain(ctx))
}

// start lets the container run that the event's call has made, so that the cgroup
// files are written which wait for that.
func (r *Rig) start(ctx context.Context) error {
	made, ok := r.event.Call.Response.(*runtimeapi.CreateContainerResponse)
	if !ok || r.sent == nil {
		return nil
	}
	c := newCall(&runtimeapi.StartContainerRequest{ContainerId: made.GetContainerId()})
	frame, err := cri.NewFrame(c.Request)
	if err != nil {
		return err
	}
	return r.send(ctx, c.Method.Name, frame, func(context.Context, *cri.Frame) (*cri.Frame, error) { return cri.NewFrame(c.Response) })
}

// Close frees what the rig holds.
func (r *Rig) Close(ctx context.Context) error {
	var errs []error
	if r.plugin != nil {
		errs = append(errs, r.plugin.Close(ctx))
	}
	return errors.Join(append(errs, r.tree.close())...)
}
