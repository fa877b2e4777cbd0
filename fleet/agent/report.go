package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// maxPlugins is how many plugins a PluginNode has at the most.
const maxPlugins = 64

// reporter writes the node's PluginNode, and only if there is news.
type reporter struct {
	client *kube.Client
	pace   *Pace
	trust  v1alpha1.Trust
	last   *v1alpha1.PluginNode // as the API server has it; nil: that is not known
	wrote  func()               // counts a write
}

// names reports whether the API server has it from the node that it has a plugin, or may have it soon.
func (r *reporter) names(plugin string) bool {
	return r.last != nil && slices.ContainsFunc(r.last.Plugins, func(one v1alpha1.PluginReport) bool { return one.Name == plugin })
}

// write reports, unless the API server has it already, or it is not the time. While the proxy does not answer, what it
// has said last stays.
func (r *reporter) write(ctx context.Context, node *metav1.PartialObjectMetadata, all map[string]v1alpha1.PluginReport,
	proxy *status.Status, proxyErr error, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, apiTime)
	defer cancel()
	if r.last == nil {
		last, err := r.client.PluginNode(ctx, node.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading what the node has reported: %w", err)
		}
		if !slices.ContainsFunc(last.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == node.UID }) { // or another one's
			last = &v1alpha1.PluginNode{ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: last.ResourceVersion}}
		}
		r.last = last
	}
	n := r.last.DeepCopy()
	n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
	if proxyErr == nil {
		n.ProxyVersion, n.Bypassed = proxy.Version, proxy.Bypass.On
	}
	n.Trust, n.Plugins = r.trust, nil
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if len(n.Plugins) < maxPlugins {
			n.Plugins = append(n.Plugins, since(all[id], r.last.Plugins, now))
		}
	}
	if !news(r.last, n) {
		r.pace.Drop()
		return nil
	}
	if now.Before(r.pace.Due(now)) {
		return nil
	}
	r.pace.Reported(now)
	saved, err := r.client.SavePluginNode(ctx, n)
	if r.last = saved; err != nil {
		r.last = nil // somebody else has written it, or it is gone
		return fmt.Errorf("reporting the node's plugins: %w", err)
	}
	r.wrote()
	return nil
}

// since gives a plugin the time since when it is so. What the proxy has not said, since it does not answer, is as it was.
func since(one v1alpha1.PluginReport, last []v1alpha1.PluginReport, now time.Time) v1alpha1.PluginReport {
	one.Message, one.Since = cut(one.Message), metav1.NewTime(now)
	i := slices.IndexFunc(last, func(l v1alpha1.PluginReport) bool { return l.Name == one.Name })
	if sh := one.Shadow; sh != nil && sh.Phase == "" {
		sh.Phase = v1alpha1.Waiting
		if i >= 0 && last[i].Shadow != nil && last[i].Shadow.Revision == sh.Revision {
			one.Shadow = last[i].Shadow
		}
	}
	if i < 0 || last[i].Revision != one.Revision {
		return one
	}
	if one.Phase == "" {
		one.Phase, one.Message = last[i].Phase, last[i].Message
	}
	if last[i].Phase == one.Phase {
		one.Since = last[i].Since
	}
	return one
}

// news reports whether a report says something else. The reason why an update cannot be fetched now changes with each try, and
// is none.
func news(last, now *v1alpha1.PluginNode) bool {
	if last.ResourceVersion == "" || last.Trust != now.Trust {
		return true
	}
	if last.ProxyVersion != now.ProxyVersion || last.Bypassed != now.Bypassed {
		return true
	}
	return !slices.EqualFunc(last.OwnerReferences, now.OwnerReferences, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) ||
		!slices.EqualFunc(last.Plugins, now.Plugins, same)
}

func same(a, b v1alpha1.PluginReport) bool {
	if a.Name != b.Name || a.Revision != b.Revision || a.Phase != b.Phase {
		return false
	}
	if !sameShadow(a.Shadow, b.Shadow) {
		return false
	}
	if a.Next == nil || b.Next == nil {
		return a.Next == b.Next
	}
	if a.Next.State == v1alpha1.NextRefused && a.Next.Message != b.Next.Message { // such as by another trust file
		return false
	}
	return a.Next.Revision == b.Next.Revision && a.Next.State == b.Next.State
}

// sameShadow takes a number of differences for news if there were none before, or it has more digits.
func sameShadow(a, b *v1alpha1.ShadowReport) bool {
	if a == nil || b == nil {
		return a == b
	}
	digits := func(r *v1alpha1.ShadowReport) int {
		if r.Differences == 0 {
			return 0
		}
		return len(strconv.FormatInt(r.Differences, 10))
	}
	return a.Revision == b.Revision && a.Phase == b.Phase && digits(a) == digits(b)
}
