package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/controller"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

var (
	agents      = flag.Int("agents", 200, "how many agents there are")
	interval    = flag.Duration("interval", 300*time.Millisecond, "between two looks of the controller at the plugin")
	bake        = flag.Int("bake", 1, "bakeSeconds of the rollouts")
	jitter      = flag.Duration("jitter", time.Second, "the longest random wait before an agent has fetched an update")
	reportEvery = flag.Duration("report-every", time.Second, "the least time between two reports of a node, and the longest random wait before one")
	atRest      = flag.Duration("rest", 15*time.Second, "how long nothing may be written in the end")
	figures     = flag.Bool("figures", false, "fail if a figure is more than 1.5 times the expected one")
	update      = flag.Bool("update", false, "write RESULTS.md")
)

const (
	group  = "/apis/fleet.wasmproxy.io/v1alpha1"
	plugin = "50-scale"
)

// The artifacts of the revisions that nodes have at first, of one with which some nodes fail, and of one with which none does. Nobody
// fetches them.
var (
	first = artifact("1")
	bad   = artifact("2")
	good  = artifact("3")
)

func artifact(digit string) string { return "r.example/p@sha256:" + strings.Repeat(digit, 64) }

func revisionName(artifact string) string {
	name, err := v1alpha1.RevisionName(plugin, v1alpha1.RevisionSpec{Artifact: artifact})
	if err != nil {
		panic(err)
	}
	return name
}

// fleet is a cluster of nodes of which there are only the agents.
type fleet struct {
	t      *testing.T
	s      *testcluster.Server
	agents []*agent
	stop   map[*agent]func()
	rows   []row
}

// TestScale rolls out a revision with which some nodes fail, and one with which none does.
func TestScale(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(*agents)+1000 {
		t.Fatalf("%d agents and the API server each have as many connections, and this process may open %d files (%v): raise the limit with ulimit -Hn",
			*agents, limit.Cur, err)
	}
	klog.SetLogger(logr.Discard()) // client-go logs each watch
	s := testcluster.Start(t)
	s.Apply("namespace/namespace.yaml", "fleet/crds/fleet.wasmproxy.io_nodeplugins.yaml", "fleet/crds/fleet.wasmproxy.io_pluginnodes.yaml",
		"fleet/rights.yaml", "fleet/policy.yaml", "fleet/priority.yaml")
	testcluster.Eventually(t, "the kind is there", func() error {
		a, err := s.Call(http.MethodGet, group+"/nodeplugins", testcluster.AdminToken, nil)
		if err == nil && a.Code != http.StatusOK {
			err = fmt.Errorf("the API server answers with %d", a.Code)
		}
		return err
	})
	f := &fleet{t: t, s: s, stop: map[*agent]func(){}}
	f.join()
	memory := f.live()
	connected := f.connect()
	memory = f.live() - memory
	created, upgraded := f.report()
	f.away()
	f.control()
	written := f.write()
	f.measure("bad revision: to the halt, and back on all nodes", f.rollBack)
	f.measure("good revision, on all nodes", f.rollOut)
	f.measure(fmt.Sprintf("at rest, for %v", *atRest), f.quiet)
	f.histories()

	n := float64(len(f.agents))
	all := []figure{
		{"CPU of a connection and its watch", milliseconds(connected.cpu) / n, 1.6, "ms"},
		{"memory of a connection and its watch", memory / n / 1e3, 90, "kB"},
		{"CPU of the first write of a PluginNode", milliseconds(created.cpu) / n, 3.2, "ms"},
		{"CPU of a later write of a PluginNode", milliseconds(upgraded.cpu) / n, 3.8, "ms"},
		{"CPU of a write of a NodePlugin, for each agent", milliseconds(written.cpu) / n / writes, 0.048, "ms"},
		{"bytes of a write of a NodePlugin, to each agent", float64(written.bytes) / n / writes / 1e3, 1.76, "kB"},
	}
	table := f.table(all)
	t.Log("\n" + table)
	for _, c := range all {
		if *figures && c.has > 1.5*c.designed {
			t.Errorf("%s: %.2f %s, and at most 1.5 × %.2f are expected", c.what, c.has, c.unit, c.designed)
		}
	}
	if *update {
		text := fmt.Sprintf(resultsHead, len(f.agents), *interval, *bake, *jitter, runtime.NumCPU()) + table
		if err := os.WriteFile("RESULTS.md", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

const resultsHead = `# A rollout to many nodes

Written by ` + "`make fleet-scale`" + `: %d simulated agents, each with a connection of its own, on a real kube-apiserver and etcd, with the real
controller, which looks every %v; bakeSeconds %d, fetches spread over %v, %d CPUs for all of it. A node that fails in a hundred is silent,
two are away, and five fail with the bad revision. The expected figures are those of the fleet's design, for 5,000 agents.

`

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// each does something for all agents, a few at a time.
func (f *fleet) each(do func(*agent) error) {
	f.t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		wg.Go(func() {
			for i := worker; i < len(f.agents); i += len(errs) {
				errs[worker] = errors.Join(errs[worker], do(f.agents[i]))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		f.t.Fatal(err)
	}
}

// within waits until it is so of all agents, as long as so many may need.
func (f *fleet) within(what string, is func(*agent) bool) {
	f.t.Helper()
	f.until(what, func() error {
		missing := slices.DeleteFunc(slices.Clone(f.agents), is)
		if len(missing) == 0 {
			return nil
		}
		return fmt.Errorf("not of %d of %d agents, such as %s, which says %+v", len(missing), len(f.agents), missing[0].name, missing[0].says())
	})
}

func (f *fleet) until(what string, try func() error) {
	f.t.Helper()
	testcluster.Within(f.t, 2*time.Minute+time.Duration(len(f.agents))*200*time.Millisecond, what, try)
}

// join makes the nodes. The first one is healthy, and the canary.
func (f *fleet) join() {
	f.t.Helper()
	for i := range *agents {
		is := healthy
		switch {
		case i%100 == 1:
			is = silent
		case i%50 == 2:
			is = away
		case i%20 == 3:
			is = sick
		}
		f.agents = append(f.agents, newAgent(f.t, f.s, fmt.Sprintf("node-%05d", i), revisionName(first), is))
	}
	f.each(func(a *agent) error {
		body := fmt.Sprintf(`{"metadata": {"name": %q, "labels": {"canary": "%v"}}, "status": {"conditions": [%s]}}`,
			a.name, a == f.agents[0], ready("True"))
		return f.call(http.MethodPost, "/api/v1/nodes", body)
	})
	body := fmt.Sprintf(`{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin", "metadata": {"name": %q}, "spec": {"artifact": %q, "rollout":
		{"bakeSeconds": %d, "canary": {"matchLabels": {"canary": "true"}}}}}`, plugin, first, *bake)
	if err := f.call(http.MethodPost, group+"/nodeplugins", body); err != nil {
		f.t.Fatal(err)
	}
}

// call makes a call as the administrator. It may be called on any goroutine.
func (f *fleet) call(method, path, body string) error {
	a, err := f.s.Call(method, path, testcluster.AdminToken, []byte(body))
	if err == nil && a.Code >= 300 {
		err = fmt.Errorf("%s %s: %d %s", method, path, a.Code, a.Body)
	}
	return err
}

func ready(status string) string {
	return fmt.Sprintf(`{"type": "Ready", "status": %q, "lastTransitionTime": %q}`, status, time.Now().UTC().Format(time.RFC3339))
}

func (f *fleet) connect() row {
	f.t.Helper()
	return f.measure("connect, and watch", func() {
		f.each(func(a *agent) error {
			testcluster.During(f.t, a.watch)
			return nil
		})
		f.within("all agents have listed", func(a *agent) bool {
			all, _ := a.plugins.All()
			return all[plugin] != nil
		})
	})
}

// report has all agents make their PluginNodes, and write them again with the version of another proxy.
func (f *fleet) report() (created, upgraded row) {
	f.t.Helper()
	created = f.measure("first report of each node", func() {
		for _, a := range f.agents {
			f.stop[a] = testcluster.During(f.t, a.run)
		}
		f.within("all have reported", func(a *agent) bool { return a.says().revision == revisionName(first) })
	})
	upgraded = f.measure("another report of each node", func() {
		for _, a := range f.agents {
			a.upgrade <- "v1.1.0"
		}
		f.within("all have reported again", func(a *agent) bool { return a.fate == silent || a.says().version == "v1.1.0" })
	})
	return created, upgraded
}

// writes is how often write writes the NodePlugin.
const writes = 10

// write changes the NodePlugin without news for agents, and waits each time until all have it.
func (f *fleet) write() row {
	f.t.Helper()
	return f.measure(fmt.Sprintf("%d writes of the NodePlugin", writes), func() {
		for i := range writes {
			version := fmt.Sprint(i)
			if err := f.call(http.MethodPatch, group+"/nodeplugins/"+plugin, `{"metadata": {"annotations": {"v": "`+version+`"}}}`); err != nil {
				f.t.Fatal(err)
			}
			f.within("all agents have the NodePlugin", func(a *agent) bool {
				all, _ := a.plugins.All() // of an agent that is away, too: its watch goes on
				return all[plugin].Annotations["v"] == version
			})
		}
	})
}

// away has some nodes become NotReady. Their agents do nothing from then on.
func (f *fleet) away() {
	f.t.Helper()
	f.each(func(a *agent) error {
		if a.fate != away {
			return nil
		}
		f.stop[a]()
		return f.call(http.MethodPatch, "/api/v1/nodes/"+a.name+"/status", `{"status": {"conditions": [`+ready("False")+`]}}`)
	})
}

// control starts the controller, which takes for stable what nodes have.
func (f *fleet) control() {
	f.t.Helper()
	client, err := kube.New(f.s.Config(f.s.Token("wasmproxy-controller", "")))
	if err != nil {
		f.t.Fatal(err)
	}
	told := slog.New(slog.NewTextHandler(f.t.Output(), nil))
	testcluster.During(f.t, func(ctx context.Context) {
		controller.New(client, controller.Options{
			Namespace: "wasmproxy", Agents: labels.Everything(), Interval: *interval, Metrics: metrics.NewController(), Log: told,
		}).Run(ctx)
	})
	f.until("nodes have what is stable", func() error {
		if s := f.status(); s.Stable == nil || s.Stable.Revision != revisionName(first) || int(s.Nodes.Selected) != len(f.agents) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}

func (f *fleet) status() v1alpha1.NodePluginStatus {
	f.t.Helper()
	var p v1alpha1.NodePlugin
	f.s.Must(http.MethodGet, group+"/nodeplugins/"+plugin, "", &p)
	return p.Status
}

// set gives the plugin another artifact.
func (f *fleet) set(artifact string) {
	f.t.Helper()
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+plugin, fmt.Sprintf(`{"spec": {"artifact": %q}}`, artifact), nil)
}

// follows reports whether a node does what the NodePlugin says.
func (a *agent) follows() bool { return a.fate == healthy || a.fate == sick }

// rollBack rolls out the bad revision, until all nodes are back.
func (f *fleet) rollBack() {
	f.t.Helper()
	f.set(bad)
	f.until("the bad revision is rolled back", func() error {
		if s := f.status(); s.RolledBack != revisionName(bad) {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	f.within("all nodes are back", func(a *agent) bool {
		return !a.follows() || a.says() == said{version: "v1.1.0", revision: revisionName(first), phase: v1alpha1.Healthy}
	})
	has := 0
	for _, a := range f.agents {
		if switched, _ := a.history(); slices.Contains(switched, revisionName(bad)) {
			has++
		}
	}
	f.t.Logf("%d of %d nodes had the bad revision", has, len(f.agents))
	if has < 2 || has > len(f.agents)/2 {
		f.t.Errorf("%d of %d nodes had the bad revision, which fails on every twentieth", has, len(f.agents))
	}
}

// rollOut rolls out the good revision.
func (f *fleet) rollOut() {
	f.t.Helper()
	f.set(good)
	f.until("the good revision is stable", func() error {
		if s := f.status(); s.Stable.Revision != revisionName(good) || s.Update != nil {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
	f.within("all nodes have proved the good revision", func(a *agent) bool {
		return !a.follows() || a.says() == said{version: "v1.1.0", revision: revisionName(good), phase: v1alpha1.Healthy}
	})
	want := 0
	for _, a := range f.agents {
		if a.follows() {
			want++
		}
	}
	f.until("the controller has counted them", func() error {
		if s := f.status(); int(s.Nodes.Healthy) != want {
			return fmt.Errorf("%d nodes are healthy, and the status is %+v", want, s)
		}
		return nil
	})
}

// quiet waits while nothing happens.
func (f *fleet) quiet() {
	f.t.Helper()
	before := f.read()
	time.Sleep(*atRest)
	after := f.read()
	if after.reports != before.reports || after.plugins != before.plugins {
		f.t.Errorf("at rest there were %d writes of PluginNodes, and %d of NodePlugins", after.reports-before.reports, after.plugins-before.plugins)
	}
}

// mostWrites is how often a node may write: when it joins and when its proxy is another one; with the bad revision when it has fetched,
// begun and ended its probation, and gone back; and the first three of these with the good one.
const mostWrites = 2 + 4 + 3

// histories holds that no node has got a revision twice, or keeps the bad one.
func (f *fleet) histories() {
	f.t.Helper()
	for _, a := range f.agents {
		switched, writes := a.history()
		want := [][]string{{revisionName(good)}, {revisionName(bad), revisionName(first), revisionName(good)}}
		if !a.follows() {
			want = [][]string{nil}
		}
		if !slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(w, switched) }) {
			f.t.Errorf("%s got the revisions %v", a.name, switched)
		}
		if writes > mostWrites {
			f.t.Errorf("%s wrote %d times, and not %d times at most", a.name, writes, mostWrites)
		}
	}
}
