// Package controller has revisions of NodePlugins come to the nodes in steps. One controller works at a time, by a Lease. It decides
// by package plan, from what the API server tells. Without it nothing moves: nodes keep what they have.
package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// Finalizer keeps a NodePlugin until no node has its plugin. ForceAnnotation, with the value true, removes it at once: nodes then keep
// the plugin.
const (
	Finalizer       = "fleet.wasmproxy.io/nodes"
	ForceAnnotation = "fleet.wasmproxy.io/force-delete"
)

// apiTime is how long the API server may take for what one plugin, or one node, needs. One that does not answer would keep all others
// from their turn. rest.Config.Timeout is no way to say so: it ends watches, too.
const apiTime = 30 * time.Second

// Options are those of a controller.
type Options struct {
	Namespace string          // of the ControllerRevisions
	Agents    labels.Selector // of nodes that are to have an agent; the reports of other ones do not count
	Interval  time.Duration   // between two looks at all plugins, and so between two writes of one status
	Metrics   *metrics.Controller
	Log       *slog.Logger
}

// Controller is the controller. Run is called once.
type Controller struct {
	Options
	client    *kube.Client
	plugins   *kube.Store[*v1alpha1.NodePlugin]
	reports   *kube.Store[*v1alpha1.PluginNode]
	nodes     *kube.Store[node]
	revisions *kube.Store[revision]

	// joined is since when nodes are to have a plugin, by plugin and node. It is zero of those that were there when this controller began.
	joined map[string]map[string]time.Time
}

// node is what is needed of a Node.
type node struct {
	uid             types.UID
	labels          map[string]string
	ready           bool
	changed         time.Time
	taints          []corev1.Taint // of a node that has the taint of new ones; else none
	resourceVersion string         // of such a node
}

// New makes a controller.
func New(client *kube.Client, o Options) *Controller {
	return &Controller{
		Options: o, client: client, joined: map[string]map[string]time.Time{},
		plugins: kube.NewStore(func(o runtime.Object) *v1alpha1.NodePlugin { return o.(*v1alpha1.NodePlugin) }),
		reports: kube.NewStore(func(o runtime.Object) *v1alpha1.PluginNode { return o.(*v1alpha1.PluginNode) }),
		nodes:   kube.NewStore(func(o runtime.Object) node { return readNode(o.(*corev1.Node)) }),

		revisions: kube.NewStore(func(o runtime.Object) revision { return readRevision(o.(*appsv1.ControllerRevision)) }),
	}
}

func readNode(n *corev1.Node) node {
	has := node{uid: n.UID, labels: n.Labels, changed: n.CreationTimestamp.Time}
	if slices.ContainsFunc(n.Spec.Taints, tainted) {
		has.taints, has.resourceVersion = n.Spec.Taints, n.ResourceVersion
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			has.ready, has.changed = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return has
}

// made reports whether a report is this node's. Else it is garbage: it is of a node that is gone, also if another one has its name.
func (n node) made(r *v1alpha1.PluginNode) bool {
	return slices.ContainsFunc(r.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == n.uid })
}

// Run works until ctx is done, which is when another controller may lead.
func (c *Controller) Run(ctx context.Context) {
	go c.plugins.Run(ctx, c.client.Fleet, "", "nodeplugins", &v1alpha1.NodePlugin{})
	go c.reports.Run(ctx, c.client.Fleet, "", "pluginnodes", &v1alpha1.PluginNode{})
	go c.nodes.Run(ctx, c.client.Core, "", "nodes", &corev1.Node{})
	go c.revisions.Run(ctx, c.client.Apps, c.Namespace, "controllerrevisions", &appsv1.ControllerRevision{})
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	defer c.Metrics.Ended()
	for {
		c.reconcile(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reconcile looks at each plugin once. Nothing follows from what was not listed.
func (c *Controller) reconcile(ctx context.Context, now time.Time) {
	plugins, first := c.plugins.All()
	reports, second := c.reports.All()
	nodes, third := c.nodes.All()
	revisions, fourth := c.revisions.All()
	if slices.Contains([]bool{first, second, third, fourth}, false) {
		return
	}
	maps.DeleteFunc(reports, func(name string, r *v1alpha1.PluginNode) bool {
		is := nodes[name]
		return !is.made(r) || !c.Agents.Matches(labels.Set(is.labels))
	})
	maps.DeleteFunc(c.joined, func(name string, _ map[string]time.Time) bool { return plugins[name] == nil })
	for name, p := range plugins {
		c.attempt(ctx, "cannot do what a NodePlugin says", slog.String("plugin", name), func(ctx context.Context) error {
			return c.follow(ctx, p.DeepCopy(), nodesOf(name, reports, nodes), now)
		})
	}
	c.admit(ctx, plugins, revisions, reports, nodes)
	c.tell(plugins, len(reports))
}

// attempt does what a plugin or a node needs, for apiTime at the most, and says so if that fails. With a conflict there is news to come.
func (c *Controller) attempt(ctx context.Context, failure string, of slog.Attr, do func(context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	if err := do(limited); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
		c.Metrics.Failed()
		c.Log.WarnContext(ctx, failure, of, "error", err)
	}
}

// tell tells Prometheus of the plugins as they were read.
func (c *Controller) tell(plugins map[string]*v1alpha1.NodePlugin, agents int) {
	all := make([]metrics.Plugin, 0, len(plugins))
	for name, p := range plugins {
		one := metrics.Plugin{Name: name, Nodes: p.Status.Nodes}
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.Ready); ready != nil {
			one.State = ready.Reason
		}
		if p.Status.Update != nil {
			one.Step = p.Status.Update.StepSince.Time
		}
		all = append(all, one)
	}
	c.Metrics.Looked(all, agents)
}

// nodesOf are the nodes whose agents have reported, and what these say of a plugin.
func nodesOf(plugin string, reports map[string]*v1alpha1.PluginNode, nodes map[string]node) (all []plan.Node) {
	for name, r := range reports {
		all = append(all, nodeOf(plugin, name, r, nodes[name]))
	}
	return all
}

// nodeOf is a node and what its agent says of a plugin.
func nodeOf(plugin, name string, r *v1alpha1.PluginNode, is node) plan.Node {
	n := plan.Node{Name: name, Labels: is.labels, Ready: is.ready, Changed: is.changed, Bypassed: r.Bypassed}
	if i := slices.IndexFunc(r.Plugins, func(p v1alpha1.PluginReport) bool { return p.Name == plugin }); i >= 0 {
		n.Report = &r.Plugins[i]
	}
	return n
}

// follow brings one plugin on by a step at the most.
func (c *Controller) follow(ctx context.Context, p *v1alpha1.NodePlugin, nodes []plan.Node, now time.Time) error {
	desired := v1alpha1.NoRevision
	switch has := slices.Contains(p.Finalizers, Finalizer); {
	case p.DeletionTimestamp != nil && !has: // others' finalizers keep it
		return nil
	case p.DeletionTimestamp != nil:
		if gone(nodes) || p.Annotations[ForceAnnotation] == "true" {
			return c.setFinalizers(ctx, p, slices.DeleteFunc(slices.Clone(p.Finalizers), func(f string) bool { return f == Finalizer }))
		}
	case !has: // before a node can have it
		return c.setFinalizers(ctx, p, append(slices.Clone(p.Finalizers), Finalizer))
	default:
		name, err := c.revise(ctx, p)
		if err != nil {
			return err
		}
		desired = name
	}
	selected, err := c.selectedBy(p, nodes, now)
	status := plan.Next(plan.Input{
		Now: now, Generation: p.Generation, Rollout: p.Spec.Rollout, Desired: desired, Status: p.Status, Nodes: selected, Wrong: err,
	})
	if equality.Semantic.DeepEqual(p.Status, status) {
		return nil
	}
	c.say(ctx, p, status)
	p.Status = status
	return c.client.SaveStatus(ctx, p)
}

// gone reports whether no node names the plugin. One that is switched off does, until it is on again.
func gone(nodes []plan.Node) bool {
	return !slices.ContainsFunc(nodes, func(n plan.Node) bool { return n.Report != nil })
}

// selectedBy are the nodes that the plugin is for, and since when. A removal is also for those that have it still.
func (c *Controller) selectedBy(p *v1alpha1.NodePlugin, nodes []plan.Node, now time.Time) (selected []plan.Node, err error) {
	before, known := c.joined[p.Name]
	joined := map[string]time.Time{}
	for _, n := range nodes {
		selects, err := plan.Selects(p.Spec.NodeSelector, n.Labels)
		has := p.DeletionTimestamp != nil && n.Report != nil
		switch {
		case err != nil && p.DeletionTimestamp == nil:
			return nil, fmt.Errorf("reading spec.nodeSelector: %w", err)
		case !selects && !has:
			continue
		}
		since, was := before[n.Name]
		if known && !was {
			since = now
		}
		joined[n.Name], n.Joined = since, since
		selected = append(selected, n)
	}
	c.joined[p.Name] = joined
	return selected, nil
}

func (c *Controller) setFinalizers(ctx context.Context, p *v1alpha1.NodePlugin, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "resourceVersion": p.ResourceVersion}})
	if err != nil {
		return err
	}
	return c.client.PatchNodePlugin(ctx, p.Name, patch)
}

// say logs where nodes are to go.
func (c *Controller) say(ctx context.Context, p *v1alpha1.NodePlugin, now v1alpha1.NodePluginStatus) {
	step := func(s v1alpha1.NodePluginStatus) string {
		switch {
		case s.Update != nil && s.Update.Halted != "":
			return s.Update.Revision + " halted: " + s.Update.Halted
		case s.Update != nil:
			return s.Update.Revision + " at step " + s.Update.Step
		case s.Stable != nil && s.RolledBack != "":
			return s.Stable.Revision + ", since " + s.RolledBack + " was rolled back"
		case s.Stable != nil:
			return s.Stable.Revision
		}
		return ""
	}
	if to := step(now); to != step(p.Status) {
		c.Log.InfoContext(ctx, "plugin goes on", "plugin", p.Name, "to", to, "nodes", now.Nodes.Selected, "failing", now.Nodes.Failing)
	}
}
