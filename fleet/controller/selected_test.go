package controller

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// TestSelectedBy knows since when a node is selected, if it was not at the first look.
func TestSelectedBy(t *testing.T) {
	c := New(nil, Options{})
	p := &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: "50-p"}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "batch"}}
	now := time.Unix(1000, 0)
	look := func(pools ...string) (joined []time.Time) { // of nodes a, b and so on
		t.Helper()
		now = now.Add(time.Minute)
		var nodes []plan.Node
		for i, pool := range pools {
			n := plan.Node{Name: string(rune('a' + i)), Labels: map[string]string{"pool": pool}}
			if pool == "had" { // which was of the pool, and has the plugin
				n.Report = new(v1alpha1.PluginReport)
			}
			nodes = append(nodes, n)
		}
		selected, err := c.selectedBy(p, nodes, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range selected {
			joined = append(joined, n.Joined)
		}
		return joined
	}
	is := func(when string, has []time.Time, want ...time.Time) {
		t.Helper()
		if !slices.EqualFunc(has, want, time.Time.Equal) {
			t.Errorf("%s: nodes are selected since %v, not %v", when, has, want)
		}
	}
	long := time.Time{}
	is("first look", look("batch", "web"), long)
	is("another node", look("batch", "batch"), long, now)
	then := now
	is("no news", look("batch", "batch", "web"), long, then)
	is("one has left", look("web", "batch"), then)
	is("it is back", look("batch", "batch"), now, then)
	p.DeletionTimestamp = &metav1.Time{Time: now}
	is("a removal", look("batch", "batch", "web", "had"), now.Add(-time.Minute), then, now)
}
