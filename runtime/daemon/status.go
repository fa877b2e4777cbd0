package daemon

import (
	"cmp"
	"context"
	"os"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/probation"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// status returns the state of the moment. It waits for the container runtime, but not for long.
func (d *daemon) status(ctx context.Context) (*status.Status, error) {
	version, err := d.reconciler.Backend.Version(ctx)
	if err == nil {
		d.reconciler.Backend.DescribeChanged(ctx)
	}
	s, failed := d.snapshot(ctx)
	if failed != nil {
		return nil, failed
	}
	s.NotReady = d.notReady(ctx, true)
	if err == nil {
		s.Backend.Name = cmp.Or(version.GetRuntimeName(), s.Backend.Name)
		s.Backend.Version = cmp.Or(version.GetRuntimeVersion(), s.Backend.Version)
	}
	return s, nil
}

// snapshot returns the state of the moment, as far as it is known without asking the container runtime: NotReady is
// empty. With the error that the plugins are not known comes all but them.
func (d *daemon) snapshot(ctx context.Context) (*status.Status, error) {
	all, err := d.plugins(ctx)
	node := d.reconciler.Backend.Node.Load()
	settings := d.settings.State()
	s := &status.Status{
		Version: d.version, PID: os.Getpid(), Now: time.Now(), Started: d.started,
		Bypass: d.slots.Bypass.Status(), Settings: settings.Settings,
		Listen: d.config.Listen, Connections: d.peers.Connections(), Peers: d.peers.All(), Plugins: all,
		Created: d.metrics.Succeeded(runtimeapi.RuntimeService_CreateContainer_FullMethodName), Queued: d.reconciler.Queue.Len(),
		Backend: status.Backend{
			Endpoint: d.config.Backend, Connected: d.reconciler.Backend.Connected(), Name: node.RuntimeName, Version: node.RuntimeVersion,
			Handlers: d.reconciler.Backend.Handlers(), Disconnects: d.reconciler.Backend.Disconnects(),
		},
		Cgroup: status.Cgroup{Root: d.config.CgroupRoot, Version: d.reconciler.Cgroups.Version(), Driver: node.CgroupDriver},
		Values: status.Values{
			StateDir: d.config.StateDir, NotHeld: d.reconciler.Ledger.NotHeld(),
			Saved: d.reconciler.Ledger.Saved() && d.slots.Saved() && !d.unkept.Load(),
		},
	}
	if settings.Err != nil {
		s.Settings.Error = plugin.Printable(settings.Err.Error(), 1<<10)
	}
	for i := range s.Peers {
		s.Peers[i].Program = plugin.Printable(s.Peers[i].Program, 64)
	}
	for _, n := range d.metrics.Calls() {
		s.Calls += n
	}
	if d.reconciler.Following.Load() {
		if s.Store.State = "filled"; d.reconciler.Backend.Behind() {
			s.Store.State = "filling"
		}
	}
	s.Store.Pods, s.Store.Containers = d.reconciler.Store.Len()
	s.Values.Objects, s.Values.Wanted = d.reconciler.Ledger.Len()
	for uid, reason := range d.reconciler.Ledger.IgnoredPods() {
		if s.Values.Ignored == nil {
			s.Values.Ignored = map[string]string{}
		}
		s.Values.Ignored[uid] = reason.Error()
	}
	s.Guests.Memory, s.Guests.Limit = d.engine.Memory()
	if d.audit != nil {
		s.Lost.AuditLines = d.audit.Lost()
	}
	if d.traces != nil {
		s.Lost.Spans = d.traces.Lost()
	}
	return s, err
}

// levelsTime is how long a scrape waits for what the owner of the plugins knows. Prometheus waits for 10 s by default.
const levelsTime = 3 * time.Second

// levels is metrics.Levels.
func (d *daemon) levels() (*status.Status, map[string]*plugin.Metrics) {
	ctx, cancel := context.WithTimeout(context.Background(), levelsTime)
	defer cancel()
	s, _ := d.snapshot(ctx) // at the end, and while their owner does not answer, the plugins are not known
	if !d.reconciler.Backend.Reachable() {
		s.NotReady = []string{"there is no connection to the container runtime"}
	}
	s.NotReady = append(s.NotReady, d.unready(ctx, false, false)...)
	return s, d.slots.Metrics(ctx)
}

// plugins returns the state of all plugins.
func (d *daemon) plugins(ctx context.Context) (status.Plugins, error) {
	all, err := d.slots.Plugins(ctx)
	for i := range all.Plugins {
		all.Plugins[i].Counts = d.metrics.Plugin(all.Plugins[i].ID)
	}
	return all, err
}

// ofProbation counts what a version on probation is judged by.
func (d *daemon) ofProbation(id string) probation.Counts {
	t := d.metrics.Plugin(id)
	return probation.Counts{
		Calls: t.Calls, Failures: t.Failures, WriteFailures: t.WriteFailures, Fights: t.Fights, Refusable: t.Refusable,
		Rejections: t.Rejections, Openings: d.metrics.Openings(id),
	}
}
