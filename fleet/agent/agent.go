package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Options are those of an agent.
type Options struct {
	Node         string // name of the node
	Namespace    string // of the ControllerRevisions
	PluginDir    string // the proxy's plugin-dir
	Program      string // wasmproxy, which tries plugins
	Settings     string // the proxy's settings file, for its limits of plugins; it may be missing
	StatusSocket string // the proxy's status-socket
	Verifier     string // wasmproxy-fleet-verify, which verifies signatures
	TrustFile    string // says by whom artifacts must be signed; without it nobody needs to
	Registry     oci.Client
	FetchJitter  time.Duration // the longest random wait before an update is fetched
	Poll         time.Duration // between looks at the proxy and the plugin directory
	ReportEvery  time.Duration // the least time between two reports, and the longest random wait before one
	Metrics      *metrics.Agent
	Log          *slog.Logger
}

// apiTime is how long the API server may take in a round of the agent for what is read of the node, and for its report. It is what kubelet
// gives it by default for its own reports of the node, nodeStatusUpdateFrequency.
const apiTime = 10 * time.Second

// nodeEvery is how often the agent reads its node's labels, and its PluginNode. A node that the labels select has as much time again to
// switch before it is silent.
const nodeEvery = plan.Silence / 2

// Agent is a node's agent. Run is called once.
type Agent struct {
	Options
	client    *kube.Client
	plugins   *kube.Store[*v1alpha1.NodePlugin]
	directory delivery.Directory
	revisions revisions
	fetcher   *fetcher
	fetched   chan struct{}

	started time.Time
	node    *metav1.PartialObjectMetadata     // nil until it was read
	labels  atomic.Pointer[map[string]string] // the node's, for the fetcher
	nodeAt  time.Time                         // when reading it was tried last
	state   map[string]delivered              // by plugin
	loaded  map[string]loaded                 // by revision
	report  reporter

	trustChanges int        // of the trust file, when the revisions were verified last
	trying       sync.Mutex // held while a plugin is tried: to compile one takes up to hundreds of MiB, and the agent's pod has a limit
}

// New makes an agent, and its directory in the plugin directory.
func New(client *kube.Client, o Options) (*Agent, error) {
	dir, err := filepath.Abs(filepath.Join(o.PluginDir, ownDir))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the agent's directory in the plugin directory: %w", err)
	}
	a := &Agent{
		Options: o, client: client, directory: delivery.Directory(o.PluginDir),
		fetched: make(chan struct{}, 1), loaded: map[string]loaded{}, started: time.Now(),
	}
	if a.state, err = readState(dir); err != nil {
		return nil, err
	}
	a.revisions = revisions{dir: dir, content: a.content, pull: o.Registry.Pull, try: a.try,
		labels: func() map[string]string { return *a.labels.Load() },
		guard:  guard{trust.NewFile(o.TrustFile), o.TrustFile, o.Verifier, o.Registry}}
	_, a.trustChanges = a.revisions.now()
	a.fetcher = &fetcher{
		has: a.revisions.ready, fetch: a.revisions.fetch, changed: a.fetched, failed: o.Metrics.FetchFailed, known: map[string]*fetching{},
	}
	if err := a.revisions.tidy(); err != nil {
		return nil, err
	}
	a.plugins = kube.NewStore(func(o runtime.Object) *v1alpha1.NodePlugin { return o.(*v1alpha1.NodePlugin) })
	a.report = reporter{client: client, pace: NewPace(o.ReportEvery), wrote: o.Metrics.Reported}
	return a, nil
}

// Run has the node follow the NodePlugins until ctx is done. It never gives up: what fails is logged and tried again.
func (a *Agent) Run(ctx context.Context) {
	go a.plugins.Run(ctx, a.client.Fleet, "", "nodeplugins", &v1alpha1.NodePlugin{})
	for said := ""; ; {
		text := ""
		var round metrics.Round
		if err := a.reconcile(ctx, &round); err != nil && ctx.Err() == nil {
			text = err.Error()
		}
		round.Failed = text != ""
		a.Metrics.Round(round)
		if text != said && text != "" {
			a.Log.WarnContext(ctx, "cannot do all that the cluster wants", "error", text)
		}
		said = text
		select {
		case <-ctx.Done():
			return
		case <-a.plugins.Changed():
		case <-a.fetched:
		case <-time.After(a.Poll):
		}
	}
}

// reconcile makes one round: each plugin to where it is to be, and a report if there is news. The error is for the log: what
// concerns one plugin keeps no other one from its place.
func (a *Agent) reconcile(ctx context.Context, round *metrics.Round) error {
	objects, listed := a.plugins.All()
	if round.Listed = listed; !listed { // nothing follows from what is not known
		if time.Since(a.started) < settle {
			return nil
		}
		return errors.New("the API server has not listed the NodePlugins yet, so the node keeps what it has: see whether the agent can reach it")
	}
	if err := a.readNode(ctx); err != nil && a.node == nil {
		return err
	}
	proxy, proxyErr := a.askProxy(ctx)
	a.followTrust()
	round.ProxyAnswers = proxyErr == nil
	var errs []error
	all, wanted := map[string]v1alpha1.PluginReport{}, map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(objects)) { // so that the same trouble is the same text
		one, err := a.follow(ctx, objects[id], proxy, wanted)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
		}
		if one != nil {
			all[id] = *one
		}
	}
	for id, is := range a.state {
		wanted[is.Revision] = true
		if objects[id] == nil {
			all[id] = v1alpha1.PluginReport{Name: id, Revision: is.Revision, Phase: v1alpha1.Orphaned}
		}
	}
	a.fetcher.keep(wanted)
	round.Unfetched, round.Phases = a.fetcher.unfetched(), map[v1alpha1.Phase]int{}
	for _, one := range all {
		round.Phases[one.Phase]++
	}
	errs = append(errs, a.collect(wanted), a.report.write(ctx, a.node, all, proxy, proxyErr, time.Now()))
	return errors.Join(errs...)
}

// followTrust has revisions be verified again, also those that were refused, if the node's trust file has changed.
func (a *Agent) followTrust() {
	is, changes := a.revisions.now()
	if a.report.trust = is; changes != a.trustChanges {
		a.trustChanges = changes
		a.fetcher.keep(nil)
	}
}

// readNode reads the node's labels, and has its PluginNode be read with the next report.
func (a *Agent) readNode(ctx context.Context) error {
	if a.node != nil && time.Since(a.nodeAt) < nodeEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	node, err := a.client.NodeMetadata(ctx, a.Node)
	if err != nil {
		return fmt.Errorf("reading the node's labels: %w", err)
	}
	a.report.last = nil // it may be gone, or garbage since the node is another one of the same name
	if a.node == nil || !maps.Equal(a.node.Labels, node.Labels) {
		a.labels.Store(&node.Labels)
		a.fetcher.keep(nil) // other revisions may be for this node now
	}
	a.node, a.nodeAt = node, time.Now()
	return nil
}

func (a *Agent) askProxy(ctx context.Context) (*status.Status, error) {
	return statusClient(a.StatusSocket).Status(ctx)
}

// content reads a ControllerRevision.
func (a *Agent) content(ctx context.Context, name string) ([]byte, error) {
	r, err := a.client.Revision(ctx, a.Namespace, name)
	if err != nil {
		return nil, err
	}
	return r.Data.Raw, nil
}

// try has a child process load the plugin of a directory as the proxy would. It delivers to an empty directory, and changes nothing. The
// error is errRefused only if the child says so: another one, such as that of a full disk, may not come again.
func (a *Agent) try(ctx context.Context, dir, plugin string) error {
	a.trying.Lock()
	defer a.trying.Unlock()
	empty, err := os.MkdirTemp(filepath.Join(a.PluginDir, ownDir), "try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(empty)
	cmd := exec.CommandContext(ctx, a.Program, "plugin", "deliver", dir, "--check-only", "--any-name",
		"--owner", owner(plugin), "--plugin-dir", empty, "--config", a.Settings)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case ended && exit.ExitCode() == delivery.ExitRefused:
		return fmt.Errorf("%w: %s", errRefused, lastLine(stderr.String()))
	case err != nil:
		return fmt.Errorf("trying the plugin by %s: %w; it said %q", a.Program, err, lastLine(stderr.String()))
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// owner is whose delivery a plugin is. Each plugin is a delivery of its own, so that none keeps another one from its place.
func owner(plugin string) string { return "fleet/" + plugin }

// collect removes revisions that nobody wants.
func (a *Agent) collect(wanted map[string]bool) error {
	maps.DeleteFunc(a.loaded, func(name string, _ loaded) bool { return !wanted[name] })
	return a.revisions.remove(func(name string) bool { return !unfinished(name) && !wanted[name] }) // a fetch may be under way
}
