package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// Taint is the key of a taint with which kubelet registers a new node. It keeps pods away until the node has the plugins that must not
// be missed, which are those with the failure policy Fail. The controller removes it, and never adds it.
const Taint = "wasmproxy.io/plugins"

func tainted(t corev1.Taint) bool { return t.Key == Taint }

// admit removes the taint from nodes that have all that they need.
func (c *Controller) admit(
	ctx context.Context, plugins map[string]*v1alpha1.NodePlugin, revisions map[string]revision,
	reports map[string]*v1alpha1.PluginNode, nodes map[string]node,
) {
	for name, n := range nodes {
		if !slices.ContainsFunc(n.taints, tainted) || reports[name] == nil {
			continue
		}
		c.attempt(ctx, "cannot remove the taint of a new node", slog.String("node", name), func(ctx context.Context) error {
			missing, err := lacks(name, plugins, revisions, reports, nodes)
			if err != nil || missing != "" {
				return err
			}
			return c.untaint(ctx, name, n)
		})
	}
}

// lacks names a plugin that a node is to have, that must not be missed, and that it has not proved; "" if there is none.
func lacks(
	name string, plugins map[string]*v1alpha1.NodePlugin, revisions map[string]revision,
	reports map[string]*v1alpha1.PluginNode, nodes map[string]node,
) (string, error) {
	for id, p := range plugins {
		if s := p.Spec.Settings; s == nil || s.FailurePolicy != "Fail" { // it may be missed
			continue
		}
		if p.DeletionTimestamp != nil || p.Spec.Disabled {
			continue
		}
		selector := p.Spec.NodeSelector
		if r, there := revisions[plan.Choose(&p.Status, name).Revision]; there { // spec may have that of an update that has not reached the node
			selector = r.selector
		}
		selects, err := plan.Selects(selector, nodes[name].labels)
		if err != nil {
			return id, fmt.Errorf("reading the nodeSelector of %s: %w", id, err)
		}
		if selects && !plan.Served(&p.Status, nodeOf(id, name, reports[name], nodes[name])) {
			return id, nil
		}
	}
	return "", nil
}

// untaint removes the taint from a node that is as it was read.
func (c *Controller) untaint(ctx context.Context, name string, n node) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.resourceVersion},
		"spec":     map[string]any{"taints": slices.DeleteFunc(slices.Clone(n.taints), tainted)},
	})
	if err != nil {
		return err
	}
	if err := c.client.PatchNode(ctx, name, patch); err != nil {
		return err
	}
	c.Log.InfoContext(ctx, "node has the plugins that must not be missed", "node", name)
	return nil
}
