package cluster

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/controller"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// TestFleet has a user bring plugins to three nodes of a real API server.
func TestFleet(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := startServer(t, "prometheus")
	f := &fleet{t: t, s: s, registry: startRegistry(t, false), artifacts: map[string]string{}, digests: map[string]string{}}
	program := buildPrograms(t, "./cmd/wasmproxy-fleet-verify")
	for _, module := range []string{"noop", "quota", "counter", "fail", "fickle", "missing-abi", "reject"} {
		f.push(module, module)
	}
	for i := range 3 {
		f.nodes = append(f.nodes, startNode(t, s, fmt.Sprintf("node-%d", i+1), "", program, f.registry))
	}
	t.Run("Refusals", func(t *testing.T) { testRefusals(t, s) })
	t.Run("Rights", func(t *testing.T) { testRights(t, s) })
	t.Run("Priority", func(t *testing.T) { testPriority(t, s) })
	t.Run("RootPlugins", func(t *testing.T) { testRootPlugins(t, s) })

	config := s.Config(s.Token("wasmproxy-controller", ""))
	client, err := kube.New(config)
	if err != nil {
		t.Fatal(err)
	}
	told := metrics.NewController()
	o := controller.Options{
		Namespace: "wasmproxy", Agents: labels.SelectorFromSet(labels.Set{"wasmproxy.io/node": "true"}), Interval: 300 * time.Millisecond,
		Metrics: told, Log: slog.New(slog.NewTextHandler(&testLog{t, "controller"}, nil)),
	}
	health := leaderelection.NewLeaderHealthzAdaptor(time.Minute)
	testcluster.During(t, func(ctx context.Context) {
		for ctx.Err() == nil { // its pod is started again after it has lost its Lease
			if err := controller.Lead(ctx, config, "wasmproxy", "test", health, func(ctx context.Context) { controller.New(client, o).Run(ctx) }); err != nil {
				t.Errorf("leading: %v", err)
			}
		}
	})
	jobs := map[string][]string{"wasmproxy-controller": {serveMetrics(t, told.Handler())}}
	for _, n := range f.nodes {
		jobs["wasmproxy-agent"] = append(jobs["wasmproxy-agent"], serveMetrics(t, n.metrics.Handler()))
	}
	f.prometheus = startPrometheus(t, s.Bin, jobs)
	callAll(t, f.nodes, func(*node, error) {}) // the plugin was called
	f.lifeOfAPlugin()
	f.newNodes(program)
}

// startServer starts an API server with the fleet's objects, and beside it puts other programs.
func startServer(t *testing.T, others ...string) *testcluster.Server {
	t.Helper()
	s := testcluster.Start(t, others...)
	s.Apply("namespace/namespace.yaml", "fleet/crds/fleet.wasmproxy.io_nodeplugins.yaml", "fleet/crds/fleet.wasmproxy.io_pluginnodes.yaml",
		"fleet/rights.yaml", "fleet/policy.yaml", "fleet/priority.yaml", "fleet/agent.yaml", "fleet/controller.yaml")
	testcluster.Eventually(t, "the kinds are there", func() error {
		for _, kind := range []string{"/nodeplugins", "/pluginnodes"} {
			if a, err := s.Call(http.MethodGet, group+kind, adminToken, nil); err != nil || a.Code != http.StatusOK {
				return fmt.Errorf("%s: %v, %d", kind, err, a.Code)
			}
		}
		return nil
	})
	return s
}

// buildPrograms builds wasmproxy, whose path it returns, and beside it programs of the fleet.
func buildPrograms(t *testing.T, packages ...string) (wasmproxy string) {
	t.Helper()
	dir := t.TempDir()
	testcluster.Run(t, "go", "build", "-C", "../..", "-buildvcs=false", "-o", dir+"/", "./cmd/wasmproxy")
	testcluster.Run(t, "go", append([]string{"build", "-C", "..", "-buildvcs=false", "-o", dir + "/"}, packages...)...)
	return filepath.Join(dir, "wasmproxy")
}

// fleet is the three nodes, and the modules in the registry.
type fleet struct {
	t                  *testing.T
	s                  *testcluster.Server
	nodes              []*node
	registry           string
	prometheus         *prometheus
	artifacts, digests map[string]string // by the name of a module
}

// startRegistry starts a registry in this process, with the API of referrers or without it.
func startRegistry(t *testing.T, referrers bool) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// push brings a module to the fleet's registry, under a name.
func (f *fleet) push(name, module string) {
	f.t.Helper()
	content, err := os.ReadFile("../../testdata/wat/" + module + ".wasm")
	if err != nil {
		f.t.Fatal(err)
	}
	artifact, err := (oci.Client{PlainHTTP: []string{f.registry}}).Push(f.t.Context(), f.registry+"/plugins/"+name, content)
	if err != nil {
		f.t.Fatal(err)
	}
	f.artifacts[name], f.digests[name] = artifact, fmt.Sprintf("%x", sha256.Sum256(content))
}

func (f *fleet) get(id string) *v1alpha1.NodePlugin {
	f.t.Helper()
	p := new(v1alpha1.NodePlugin)
	f.s.Must(http.MethodGet, group+"/nodeplugins/"+id, "", p)
	return p
}

// report is what a node says of a plugin.
func (f *fleet) report(n *node, id string) (r v1alpha1.PluginReport) {
	f.t.Helper()
	var all v1alpha1.PluginNode
	f.s.Must(http.MethodGet, group+"/pluginnodes/"+n.name, "", &all)
	for _, p := range all.Plugins {
		if p.Name == id {
			r = p
		}
	}
	return r
}

// have is how many nodes have a module for a plugin.
func (f *fleet) have(id, module string) (n int) {
	for _, node := range f.nodes {
		if digest, _ := node.has(f.t, id); digest == f.digests[module] {
			n++
		}
	}
	return n
}

// set gives a plugin another artifact.
func (f *fleet) set(id, module string, bakeSeconds int) {
	f.t.Helper()
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, fmt.Sprintf(`{"spec": {"artifact": %q, "rollout": {"bakeSeconds": %d}}}`,
		f.artifacts[module], bakeSeconds), nil)
}

// complete waits until all nodes have a module, and holds that never more have it than the step of the moment says.
func (f *fleet) complete(id, module string) {
	f.t.Helper()
	most := map[string]int{}
	testcluster.Eventually(f.t, module+" is on all nodes", func() error {
		n, p := f.have(id, module), f.get(id)
		if u := p.Status.Update; u != nil && p.Status.ObservedGeneration == p.Generation {
			most[u.Step] = max(most[u.Step], n)
			may := 0
			for _, node := range f.nodes {
				if plan.Choose(&p.Status, node.name).Revision == u.Revision {
					may++
				}
			}
			if n > may {
				f.t.Errorf("%d nodes have %s at step %s, and %d may", n, module, u.Step, may)
			}
		}
		if p.Status.ObservedGeneration != p.Generation || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Ready) {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		if healthy := int(p.Status.Nodes.Healthy); healthy < len(f.nodes) {
			return fmt.Errorf("%d of %d nodes are healthy", healthy, len(f.nodes))
		}
		if n < len(f.nodes) { // and the last report of one is of before
			return fmt.Errorf("%d nodes have it", n)
		}
		return nil
	})
	if most["Fetch"] > 0 || most["Canary"] > 1 || most["34%"] > 2 {
		f.t.Errorf("nodes that had %s, by step: %v", module, most)
	}
}

// rolledBack waits until a revision is taken back, and holds that it was on so many nodes at the most, and on none in the end.
func (f *fleet) rolledBack(id, module, stable string, atMost int) {
	f.t.Helper()
	most := 0
	testcluster.Eventually(f.t, module+" is rolled back", func() error {
		most = max(most, f.have(id, module))
		p := f.get(id)
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Stalled) || p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		if n := f.have(id, stable); n != len(f.nodes) || int(p.Status.Nodes.Healthy) != n {
			return fmt.Errorf("%d nodes have %s again, of which %d are healthy", n, stable, p.Status.Nodes.Healthy)
		}
		return nil
	})
	if most > atMost {
		f.t.Errorf("%d nodes had %s, and %d at the most should", most, module, atMost)
	}
}

func (f *fleet) lifeOfAPlugin() {
	t, id := f.t, "50-guest"
	object := `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin",
		"metadata": {"name": "` + id + `"}, "spec": {"artifact": "` + f.artifacts["noop"] + `", "nodeSelector": {"matchLabels": {"pool": "batch"}},
		"settings": {"match": {"namespaces": ["!kube-system"]}, "grant": ["env", {"mounts": ["/opt/tools"]}], "config": {"any": ["JSON", 1]}},
		"rollout": {"steps": [34, 100], "bakeSeconds": 1}}}`
	f.s.Must(http.MethodPost, group+"/nodeplugins?fieldValidation=Strict", object, nil)
	f.complete(id, "noop")
	f.madeAgain(id, "noop", object)
	f.shadow(id)

	f.edited(id)
	f.fight(id, "quota")
	f.set(id, "noop", 1)
	f.complete(id, "noop")
	f.set(id, "quota", 600)
	f.withoutAPIServer(id, "quota")
	f.set(id, "quota", 1) // which also ends the probation of the first node
	f.complete(id, "quota")
	f.atRest(id)
	f.wrongDigest(id)
	f.pausedAndBack(id)
	f.untrusted(id)

	f.set(id, "missing-abi", 1) // the proxy would not load it: no node switches
	f.rolledBack(id, "missing-abi", "quota", 0)
	if e := f.get(id).Status.Examples; len(e) == 0 || e[0].Reason != "Refused" {
		t.Errorf("the examples of a module that does not load are %+v", e)
	}

	f.prometheus.sees(`wasmproxy_fleet_plugin_state{plugin="` + id + `", state="RolledBack"} == 1`)

	f.set(id, "fail", 60) // its calls fail: the canary goes back by itself, and the controller then
	f.rolledBack(id, "fail", "quota", 1)
	if e := f.get(id).Status.Examples; len(e) != 1 || e[0].Reason != "Failing" || !strings.Contains(e[0].Message, "failed its probation") {
		t.Errorf("the examples of a plugin that fails are %+v", e)
	}

	f.signals(id)
	f.set(id, "reject", 60) // it refuses each call, which is judged when somebody has said how many it may
	testcluster.Eventually(t, "the canary refuses calls", func() error {
		if f.have(id, "reject") == 0 {
			return fmt.Errorf("no node has the plugin")
		}
		return nil
	})
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"rollout": {"maxRefused": "50%"}}}`, nil)
	f.rolledBack(id, "reject", "quota", 1)
	if e := f.get(id).Status.Examples; len(e) != 1 || e[0].Reason != "Failing" || !strings.Contains(e[0].Message, "and may refuse 50 %") {
		t.Errorf("the examples of a plugin that refuses too much are %+v", e)
	}

	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"disabled": true, "rollout": {"bakeSeconds": 1}}}`, nil)
	testcluster.Eventually(t, "the plugin is disabled on all nodes", func() error {
		for _, n := range f.nodes {
			if digest, enabled := n.has(t, id); digest != f.digests["quota"] || enabled {
				return fmt.Errorf("on %s it has the digest %q, and enabled is %v", n.name, digest, enabled)
			}
		}
		return nil
	})
	f.handMade()
	f.s.Must(http.MethodDelete, group+"/nodeplugins/"+id, "", nil)
	testcluster.Eventually(t, "the plugin is removed", func() error {
		a, err := f.s.Call(http.MethodGet, group+"/nodeplugins/"+id, adminToken, nil)
		if err == nil && a.Code != http.StatusNotFound {
			err = fmt.Errorf("the object is there: %s", a.Body)
		}
		return err
	})
	for _, n := range f.nodes {
		if digest, _ := n.has(t, id); digest != "" {
			t.Errorf("%s still has the module %s", n.name, digest)
		}
	}
}

// newNodes register with the taint. One loses it when it has the plugin that must not be missed, and one that cannot have it does not.
func (f *fleet) newNodes(program string) {
	f.t.Helper()
	const id, taint = "20-guard", `, "spec": {"taints": [{"key": "wasmproxy.io/plugins", "value": "pending", "effect": "NoSchedule"}]}`
	f.s.Must(http.MethodPost, group+"/nodeplugins?fieldValidation=Strict", `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin",
		"metadata": {"name": "`+id+`"}, "spec": {"artifact": "`+f.artifacts["noop"]+`", "settings": {"failure-policy": "Fail"},
		"rollout": {"steps": [100], "bakeSeconds": 1}}}`, nil)
	f.complete(id, "noop")
	tainted := func(n *node) bool {
		var has struct {
			Spec struct{ Taints []struct{ Key string } }
		}
		f.s.Must(http.MethodGet, "/api/v1/nodes/"+n.name, "", &has)
		return len(has.Spec.Taints) > 0
	}
	bad := startNode(f.t, f.s, "node-5", taint, program, "elsewhere.invalid")
	good := startNode(f.t, f.s, "node-4", taint, program, f.registry)
	admitted := func(n *node) func() error {
		return func() error {
			if tainted(n) {
				return fmt.Errorf("%s has the taint", n.name)
			}
			if digest, enabled := n.has(f.t, id); digest != f.digests["noop"] || !enabled {
				f.t.Errorf("%s has lost its taint, and has the digest %q", n.name, digest)
			}
			return nil
		}
	}
	testcluster.Eventually(f.t, "a new node loses its taint", admitted(good))
	testcluster.Eventually(f.t, "the other one says why it has not got the plugin", func() error {
		n := new(v1alpha1.PluginNode)
		f.s.Must(http.MethodGet, group+"/pluginnodes/"+bad.name, "", n)
		for _, p := range n.Plugins {
			if p.Name == id && p.Next != nil && p.Next.State == v1alpha1.NextWaiting {
				return nil
			}
		}
		return fmt.Errorf("it says %+v", n.Plugins)
	})
	f.leaves(f.nodes[0], id)
	f.anotherNode(good, id, taint)
	if !tainted(good) {
		f.t.Error("a node that was made again has lost its taint by the report of the former one")
	}
	if !tainted(bad) {
		f.t.Error("a node that has not got the plugin has lost its taint")
	}
	good.stopAgent = good.agent()
	testcluster.Eventually(f.t, "a node that was made again loses its taint", admitted(good))
	bad.stopAgent()
	bad.registry = f.registry
	agent := bad.agentCommand(f.s, buildAgent(f.t, program))(f.t.Context())
	testcluster.Process(f.t, agent)
	testcluster.Eventually(f.t, "a node that was repaired loses its taint", admitted(bad))
	time.Sleep(3 * time.Second)                                                                     // at rest
	const most = 25 << 10                                                                           // KiB, by the design
	testcluster.Eventually(f.t, "the agent's program has the memory of one at rest", func() error { // a slow machine comes to rest later
		if used := resident(f.t, agent.Process); used > most {
			return fmt.Errorf("it has %d KiB, more than %d", used, most)
		}
		return nil
	})
}

// handMade is a file that somebody has made on a node: it stays, and the other nodes get the plugin.
func (f *fleet) handMade() {
	f.t.Helper()
	const id, text = "60-mine", `{"remote-endpoint": "/nowhere", "runtime-hooks": ["PreRunPodSandbox"], "enabled": false}`
	file := filepath.Join(f.nodes[1].plugins(), id+".json")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
	f.s.Must(http.MethodPost, group+"/nodeplugins", `{"apiVersion": "fleet.wasmproxy.io/v1alpha1", "kind": "NodePlugin",
		"metadata": {"name": "`+id+`"}, "spec": {"artifact": "`+f.artifacts["noop"]+`", "rollout": {"steps": [100], "bakeSeconds": 1}}}`, nil)
	testcluster.Eventually(f.t, "the other nodes have the plugin", func() error {
		p := f.get(id)
		if p.Status.Nodes.Healthy != 2 || p.Status.Nodes.Apart != 1 {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		return nil
	})
	if has, err := os.ReadFile(file); err != nil || string(has) != text {
		f.t.Errorf("the file that was made by hand is %q (%v)", has, err)
	}
	n := new(v1alpha1.PluginNode)
	f.s.Must(http.MethodGet, group+"/pluginnodes/node-2", "", n)
	for _, p := range n.Plugins {
		if p.Name == id && (p.Phase != v1alpha1.Blocked || !strings.Contains(p.Message, "no delivery has brought it")) {
			f.t.Errorf("the node says %+v of a plugin whose file was made by hand", p)
		}
	}
}

// withoutAPIServer kills the API server when the first node has switched: the nodes keep what they have, and an agent that starts
// meanwhile changes nothing.
func (f *fleet) withoutAPIServer(id, module string) {
	f.t.Helper()
	testcluster.Eventually(f.t, "the first node has "+module, func() error {
		if f.have(id, module) == 0 {
			return fmt.Errorf("no node has it")
		}
		return nil
	})
	f.s.Kill()
	for _, n := range f.nodes {
		n.stopAgent()
	}
	before := f.files(id)
	for _, n := range f.nodes {
		n.stopAgent = n.agent()
	}
	time.Sleep(2 * time.Second)
	if now := f.files(id); now != before {
		f.t.Errorf("without the API server the nodes had\n%s\nand have\n%s", before, now)
	}
	f.s.Start()
}

// files are a plugin's JSON files on all nodes.
func (f *fleet) files(id string) (all string) {
	for _, n := range f.nodes {
		text, err := os.ReadFile(filepath.Join(n.plugins(), id+".json"))
		all += fmt.Sprintf("%s: %v\n%s\n", n.name, err, text)
	}
	return all
}

// atRest holds that nobody writes when nothing happens, also when an agent starts anew and has lost what it had delivered.
func (f *fleet) atRest(id string) {
	f.t.Helper()
	versions := func() string {
		var all struct {
			Items []struct {
				Metadata struct{ Name, ResourceVersion string }
			}
		}
		f.s.Must(http.MethodGet, group+"/pluginnodes", "", &all)
		return fmt.Sprint(all, f.get(id).ResourceVersion)
	}
	before := versions()
	for _, n := range f.nodes {
		n.stopAgent()
	}
	if err := os.Remove(filepath.Join(f.nodes[0].plugins(), ".fleet", "delivered.json")); err != nil {
		f.t.Fatal(err)
	}
	for _, n := range f.nodes {
		n.stopAgent = n.agent()
	}
	testcluster.Eventually(f.t, "an agent knows again what it had delivered", func() error {
		_, err := os.Stat(filepath.Join(f.nodes[0].plugins(), ".fleet", "delivered.json"))
		return err
	})
	time.Sleep(2 * time.Second)
	if now := versions(); now != before {
		f.t.Errorf("at rest the objects had the versions\n%s\nand have\n%s", before, now)
	}
}

// shadow has a plugin that would refuse each pod called beside the stable one, on all nodes, until there is another artifact. One whose
// calls fail stops at the canary.
func (f *fleet) shadow(id string) {
	f.t.Helper()
	mode := func(artifact, mode string, bakeSeconds int) {
		f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, fmt.Sprintf(`{"spec": {"artifact": %q, "rollout": {"mode": %q, "bakeSeconds": %d}}}`,
			f.artifacts[artifact], mode, bakeSeconds), nil)
	}
	shadows := func(module string) (n int) {
		for _, node := range f.nodes {
			text, err := os.ReadFile(filepath.Join(node.plugins(), id+".json"))
			if err == nil && strings.Contains(string(text), `"wasm-module":".modules/shadow-`+f.digests[module]+`.wasm"`) {
				n++
			}
		}
		return n
	}
	mode("reject", "Shadow", 1)
	testcluster.Eventually(f.t, "all nodes call the shadow", func() error {
		p := f.get(id)
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.Ready); p.Status.ObservedGeneration != p.Generation || ready.Reason != "Shadow" {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		for _, node := range f.nodes {
			n := new(v1alpha1.PluginNode)
			f.s.Must(http.MethodGet, group+"/pluginnodes/"+node.name, "", n)
			one := n.Plugins[0]
			if sh := one.Shadow; sh == nil || sh.Phase != v1alpha1.Healthy || sh.Differences < 10 {
				return fmt.Errorf("%s says %+v, and of the shadow %+v", node.name, one, one.Shadow)
			}
		}
		return nil
	})
	if n, m := f.have(id, "noop"), shadows("reject"); n != 3 || m != 3 {
		f.t.Errorf("%d nodes have the stable module, and %d the shadow", n, m)
	}
	_, err := f.nodes[0].kubelet.RunPodSandbox(f.t.Context(), &runtimeapi.RunPodSandboxRequest{Config: &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "beside-a-shadow"},
	}})
	if err != nil {
		f.t.Errorf("a pod beside a shadow that would refuse it: %v", err)
	}

	mode("fail", "Shadow", 60)
	most := 0
	testcluster.Eventually(f.t, "a shadow that fails is taken back", func() error {
		most = max(most, shadows("fail"))
		p := f.get(id)
		if !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Stalled) || shadows("fail")+shadows("reject") > 0 {
			return fmt.Errorf("%d nodes have it, and the status is %+v", shadows("fail"), p.Status)
		}
		return nil
	})
	if most != 1 {
		f.t.Errorf("%d nodes had a shadow that fails, and the canary alone should", most)
	}
	mode("noop", "Apply", 1)
	f.complete(id, "noop")
	for _, n := range f.nodes {
		if files, _ := filepath.Glob(filepath.Join(n.plugins(), ".modules", "*.wasm")); len(files) != 1 {
			f.t.Errorf("%s has the modules %q", n.name, files)
		}
	}
}

// edited is a file that somebody has edited on a node, as wasmproxy plugin disable does: it stays, and the node says so.
func (f *fleet) edited(id string) {
	f.t.Helper()
	file := filepath.Join(f.nodes[0].plugins(), id+".json")
	text, err := os.ReadFile(file)
	if err != nil {
		f.t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "{", `{"enabled": false, `, 1))
	if err := os.WriteFile(file, text, 0o644); err != nil {
		f.t.Fatal(err)
	}
	testcluster.Eventually(f.t, "the node says that its file was edited", func() error {
		if p := f.get(id); p.Status.Nodes.Apart != 1 {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		return nil
	})
	if has, err := os.ReadFile(file); err != nil || string(has) != string(text) {
		f.t.Errorf("the edited file is %q (%v)", has, err)
	}
}

// wrongDigest is an artifact that the registry does not have: no node switches, and all say why.
func (f *fleet) wrongDigest(id string) {
	f.t.Helper()
	before := f.files(id)
	artifact, _, _ := strings.Cut(f.artifacts["noop"], "@")
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"artifact": "`+artifact+"@sha256:"+someDigest+`"}}`, nil)
	testcluster.Eventually(f.t, "all nodes say that they cannot fetch it", func() error {
		for _, node := range f.nodes {
			n := new(v1alpha1.PluginNode)
			f.s.Must(http.MethodGet, group+"/pluginnodes/"+node.name, "", n)
			if next := n.Plugins[0].Next; next == nil || next.State != v1alpha1.NextWaiting || next.Message == "" {
				return fmt.Errorf("%s says %+v", node.name, n.Plugins[0])
			}
		}
		return nil
	})
	if u := f.get(id).Status.Update; u == nil || u.Step != "Fetch" || f.files(id) != before {
		f.t.Errorf("with an artifact that is not there the update is %+v, and the files are\n%s", u, f.files(id))
	}
	f.prometheus.check()
}

// fetched has all nodes fetch a module, and pauses the rollout there.
func (f *fleet) fetched(id, module string) {
	f.t.Helper()
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"artifact": "`+f.artifacts[module]+`", "rollout": {"paused": true, "bakeSeconds": 600}}}`, nil)
	testcluster.Eventually(f.t, "all nodes have fetched the update", func() error {
		p := f.get(id)
		if u := p.Status.Update; p.Status.ObservedGeneration != p.Generation || u == nil || p.Status.Nodes.Fetched != 3 {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		return nil
	})
}

// pausedAndBack is a rollout that is paused, goes on to its canary, and is taken back by hand.
func (f *fleet) pausedAndBack(id string) {
	f.t.Helper()
	f.fetched(id, "noop")
	if u := f.get(id).Status.Update; u.Step != "Fetch" || f.have(id, "noop") > 0 {
		f.t.Errorf("a paused rollout is at step %s, and %d nodes have switched", u.Step, f.have(id, "noop"))
	}
	f.s.Must(http.MethodPatch, group+"/nodeplugins/"+id, `{"spec": {"rollout": {"paused": false}}}`, nil)
	testcluster.Eventually(f.t, "the canary has the update", func() error {
		if n := f.have(id, "noop"); n != 1 {
			return fmt.Errorf("%d nodes have it", n)
		}
		return nil
	})
	f.set(id, "quota", 1)
	f.complete(id, "quota")
}
