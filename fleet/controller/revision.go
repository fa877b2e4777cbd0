package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// pluginLabel has the name of the NodePlugin of a ControllerRevision.
const pluginLabel = "fleet.wasmproxy.io/plugin"

// keptRevisions is how many revisions of a plugin are kept beside those in its status.
const keptRevisions = 5

// revision is what is needed of a ControllerRevision.
type revision struct {
	plugin   string // name of its NodePlugin
	owner    types.UID
	made     metav1.Time
	selector *metav1.LabelSelector
}

func readRevision(r *appsv1.ControllerRevision) revision {
	has := revision{plugin: r.Labels[pluginLabel], made: r.CreationTimestamp}
	if len(r.OwnerReferences) > 0 {
		has.owner = r.OwnerReferences[0].UID
	}
	var spec v1alpha1.RevisionSpec
	if json.Unmarshal(r.Data.Raw, &spec) == nil { // else it was not made by a controller, and no node takes it
		has.selector = spec.NodeSelector
	}
	return has
}

// revise makes the revision of a plugin's spec, if it is not there, and returns its name.
func (c *Controller) revise(ctx context.Context, p *v1alpha1.NodePlugin) (string, error) {
	name, err := v1alpha1.RevisionName(p.Name, p.Spec.RevisionSpec)
	if err != nil {
		return "", err
	}
	all, _ := c.revisions.All()
	maps.DeleteFunc(all, func(_ string, r revision) bool { return r.plugin != p.Name })
	owners := []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodePlugin", Name: p.Name, UID: p.UID}}
	if err := c.own(ctx, p, owners, all); err != nil {
		return "", err
	}
	if _, there := all[name]; there {
		return name, nil
	}
	data, err := json.Marshal(p.Spec.RevisionSpec)
	if err != nil {
		return "", err
	}
	err = c.client.CreateRevision(ctx, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: c.Namespace, Labels: map[string]string{pluginLabel: p.Name}, OwnerReferences: owners,
		},
		Data: runtime.RawExtension{Raw: data}, Revision: p.Generation,
	})
	if apierrors.IsAlreadyExists(err) { // there is news of it to come
		return name, nil
	}
	if err != nil {
		return "", fmt.Errorf("making the revision %s: %w", name, err)
	}
	return name, c.prune(ctx, p, name, all)
}

// own makes the plugin the owner of its revisions. If it was deleted and made again, they have the UID of the former one, and the garbage
// collector would remove what nodes have.
func (c *Controller) own(ctx context.Context, p *v1alpha1.NodePlugin, owners []metav1.OwnerReference, all map[string]revision) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": owners}})
	if err != nil {
		return err
	}
	for name, r := range all {
		if r.owner == p.UID {
			continue
		}
		if err := c.client.PatchRevision(ctx, c.Namespace, name, patch); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("owning the revision %s: %w", name, err)
		}
	}
	return nil
}

// inStatus reports whether a status names a revision.
func inStatus(s v1alpha1.NodePluginStatus, revision string) bool {
	switch {
	case s.Stable != nil && s.Stable.Revision == revision, s.Update != nil && s.Update.Revision == revision:
		return true
	}
	return s.RolledBack == revision
}

// prune removes the oldest revisions that no node is to have.
func (c *Controller) prune(ctx context.Context, p *v1alpha1.NodePlugin, made string, all map[string]revision) error {
	maps.DeleteFunc(all, func(name string, _ revision) bool { return name == made || inStatus(p.Status, name) })
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(all[a].made.Compare(all[b].made.Time), cmp.Compare(a, b))
	})
	var errs []error
	for _, name := range names[:max(0, len(names)-keptRevisions)] {
		errs = append(errs, c.client.DeleteRevision(ctx, c.Namespace, name))
	}
	return errors.Join(errs...)
}
