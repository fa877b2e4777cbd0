package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// node is an agent's, without an API server and a proxy.
type node struct {
	*Agent
	p                *v1alpha1.NodePlugin
	content, modules map[string][]byte
	away             bool // the registry
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	own := filepath.Join(dir, ownDir)
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	n := &node{content: map[string][]byte{}, modules: map[string][]byte{}, p: &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: "50-p"}}}
	n.Agent = &Agent{
		Options: Options{Node: "n", PluginDir: dir, Log: slog.New(slog.DiscardHandler)}, directory: delivery.Directory(dir),
		fetched: make(chan struct{}, 1), loaded: map[string]loaded{}, state: map[string]delivered{}, node: &metav1.PartialObjectMetadata{},
	}
	n.revisions = revisions{
		dir:     own,
		content: func(_ context.Context, name string) ([]byte, error) { return n.content[name], nil },
		pull: func(_ context.Context, artifact string) ([]byte, error) {
			if n.away {
				return nil, errors.New("the registry is away")
			}
			return n.modules[artifact], nil
		},
		try:    func(context.Context, string, string) error { return nil },
		labels: func() map[string]string { return nil },
		guard:  guard{trust.NewFile(filepath.Join(dir, "no-trust")), "", "", oci.Client{}},
	}
	n.fetcher = &fetcher{has: n.revisions.ready, fetch: n.revisions.fetch, changed: n.fetched, failed: func() {}, known: map[string]*fetching{}}
	return n
}

// revision makes one that has a module of its own.
func (n *node) revision(t *testing.T, digest string) string {
	t.Helper()
	spec := v1alpha1.RevisionSpec{Artifact: "r.example/p@sha256:" + digest}
	name, err := v1alpha1.RevisionName("50-p", spec)
	if err == nil {
		n.content[name], err = json.Marshal(spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.modules[spec.Artifact] = []byte("\x00asm\x01\x00\x00\x00" + digest)
	return name
}

func (n *node) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		wanted := map[string]bool{}
		if _, err := n.follow(t.Context(), n.p, nil, wanted); err != nil {
			t.Fatal(err)
		}
		for _, has := range n.state {
			wanted[has.Revision] = true
		}
		n.fetcher.keep(wanted)
		if err := n.collect(wanted); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("waiting until %s: the node has %+v", what, n.state)
		}
	}
}

// has says whether a revision is in its place.
func (n *node) has(revision string) func() bool {
	return func() bool { return n.state["50-p"].Revision == revision }
}

// TestRegistryIsAway: a node that has switched has the stable revision on disk, and goes back to it without the registry. What runs
// is switched off even if the revision that is to run cannot be fetched.
func TestRegistryIsAway(t *testing.T) {
	n := newNode(t)
	stable, update := n.revision(t, "1"), n.revision(t, "2")
	n.p.Status.Stable = &v1alpha1.Stable{Revision: stable}
	n.await(t, "the node says that it has fetched the stable revision", func() bool {
		says, err := n.follow(t.Context(), n.p, nil, map[string]bool{})
		return err == nil && says != nil && says.Next != nil && says.Next.State == v1alpha1.NextFetched
	})
	if n.has(stable)() {
		t.Fatal("a node has a plugin before the API server knows that it may: nobody would wait for it to remove the plugin")
	}
	n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	n.await(t, "the node has the stable revision", n.has(stable))
	n.p.Status.Update = &v1alpha1.Update{Revision: update, Canaries: []string{"n"}}
	n.await(t, "the node has the update", n.has(update))
	n.away = true
	n.p.Status.Update = nil
	n.await(t, "the node has gone back", n.has(stable))

	n.p.Status.Stable, n.p.Spec.Disabled = &v1alpha1.Stable{Revision: n.revision(t, "3")}, true
	n.await(t, "the plugin is switched off", func() bool { return n.state["50-p"].Disabled })
	if text, err := os.ReadFile(filepath.Join(n.PluginDir, "50-p.json")); err != nil || !strings.Contains(string(text), `"enabled": false`) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestNewNodeGoesBack: a node that is new in the middle of a rollout fetches the stable revision, too, so that it goes back without the
// registry as all others do.
func TestNewNodeGoesBack(t *testing.T) {
	n := newNode(t)
	n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	stable, update := n.revision(t, "1"), n.revision(t, "2")
	n.p.Status.Stable = &v1alpha1.Stable{Revision: stable}
	n.p.Status.Update = &v1alpha1.Update{Revision: update, Canaries: []string{"n"}}
	n.await(t, "the node has the update", n.has(update))
	n.await(t, "the stable revision is on disk", func() bool { return n.revisions.has(stable) })
	n.away = true
	n.p.Status.Update = nil
	n.await(t, "the node has gone back", n.has(stable))
}

// TestStableChangesOnDisk: a node goes back to the stable revision also if that has changed on the disk since the node had it.
func TestStableChangesOnDisk(t *testing.T) {
	n := newNode(t)
	n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	stable, update := n.revision(t, "1"), n.revision(t, "2")
	n.p.Status.Stable = &v1alpha1.Stable{Revision: stable}
	n.await(t, "the node has the stable revision", n.has(stable))
	n.p.Status.Update = &v1alpha1.Update{Revision: update, Canaries: []string{"n"}}
	n.await(t, "the node has the update", n.has(update))
	if err := os.WriteFile(n.revisions.path(stable, "50-p.wasm"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	n.p.Status.Update = nil
	for range 2 { // it says what is wrong, and begins to fetch it again
		if _, err := n.follow(t.Context(), n.p, nil, map[string]bool{}); err == nil {
			t.Error("the node does not say that the revision has changed")
		}
	}
	n.await(t, "the node has gone back", n.has(stable))
}

// TestShadowsLeaveNoModule: a revision that was a shadow before it became the node's leaves no module when another one takes its place.
func TestShadowsLeaveNoModule(t *testing.T) {
	n := newNode(t)
	n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	first, second, third := n.revision(t, "1"), n.revision(t, "2"), n.revision(t, "3")
	n.p.Status.Stable = &v1alpha1.Stable{Revision: first}
	n.await(t, "the node has the first revision", n.has(first))
	n.p.Status.Update = &v1alpha1.Update{Revision: second, Canaries: []string{"n"}, Mode: v1alpha1.Shadow}
	n.await(t, "the second one is its shadow", func() bool { return n.state["50-p"].Shadow != "" })
	n.p.Status.Update.Mode = v1alpha1.Apply
	n.await(t, "the node has the second one", n.has(second))
	n.p.Status.Stable, n.p.Status.Update = &v1alpha1.Stable{Revision: third}, nil
	n.await(t, "the node has the third one", n.has(third))
	if left, err := os.ReadDir(filepath.Join(n.PluginDir, registry.Modules)); err != nil || len(left) != 1 {
		t.Errorf("one module is named, and there are %v, error %v", left, err)
	}
}

// TestShadowStays: a shadow stays while it, or the revision beside which it is called, is verified again, as after another label of the
// node or a new agent. Else it would lose what is known of its calls. The node goes on to report it, also while the plugin is switched
// off: a node without a shadow that is to have one is silent, and the rollout stops.
func TestShadowStays(t *testing.T) {
	for _, while := range []string{"the stable revision is verified", "the shadow is verified", "the plugin is switched off"} {
		n := newNode(t)
		n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
		stable, shadow := n.revision(t, "1"), n.revision(t, "2")
		n.p.Status.Stable = &v1alpha1.Stable{Revision: stable}
		n.p.Status.Update = &v1alpha1.Update{Revision: shadow, Canaries: []string{"n"}, Mode: v1alpha1.Shadow}
		n.await(t, "the node has the shadow", func() bool { return n.state["50-p"].Shadow != "" })
		n.fetcher.keep(nil)
		verified := map[string]string{"the stable revision is verified": stable, "the shadow is verified": shadow}[while]
		n.fetcher.has = func(revision string) bool { return revision != verified } // there is a trust file, and this takes its time
		n.fetcher.fetch = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		n.p.Spec.Disabled = verified == ""
		says, err := n.follow(t.Context(), n.p, nil, map[string]bool{})
		if err != nil || says.Shadow == nil || says.Shadow.Revision != shadow || (n.state["50-p"].Shadow == "") != n.p.Spec.Disabled {
			t.Errorf("while %s the node says %+v, and has %+v, error %v", while, says, n.state["50-p"], err)
		}
	}
}

// TestUpdateIsReportedWithoutStable: a node whose stable revision cannot be had any more, such as one that the trust file refuses now,
// says of the update that it has fetched it. Else that would wait in its first step for ever.
func TestUpdateIsReportedWithoutStable(t *testing.T) {
	n := newNode(t)
	stable, update := n.revision(t, "1"), n.revision(t, "2")
	delete(n.content, stable)
	n.p.Status.Stable, n.p.Status.Update = &v1alpha1.Stable{Revision: stable}, &v1alpha1.Update{Revision: update}
	n.await(t, "the update is fetched", func() bool {
		done, err := n.fetcher.want(t.Context(), update, 0)
		_, failed := n.fetcher.want(t.Context(), stable, 0)
		return done && err == nil && failed != nil
	})
	says, err := n.follow(t.Context(), n.p, nil, map[string]bool{})
	if err != nil || says.Next == nil || says.Next.Revision != update || says.Next.State != v1alpha1.NextFetched {
		t.Errorf("the node says %+v, error %v", says.Next, err)
	}
}

// TestStateCannotBeSaved: what the node has is saved as soon as that is possible, also if the disk was full just then. Else an agent that
// starts anew would take a plugin that is gone for one that is there.
func TestStateCannotBeSaved(t *testing.T) {
	n := newNode(t)
	n.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	n.p.Status.Stable = &v1alpha1.Stable{Revision: n.revision(t, "1")}
	n.await(t, "the node has the plugin", n.has(n.p.Status.Stable.Revision))
	saved, err := readState(n.revisions.dir)
	if err != nil || len(saved) != 1 {
		t.Fatalf("%v is saved, error %v", saved, err)
	}
	file := n.revisions.path(stateFile)
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	n.p.Status.Stable = &v1alpha1.Stable{Revision: v1alpha1.NoRevision}
	if _, err := n.follow(t.Context(), n.p, nil, map[string]bool{}); err == nil {
		t.Fatal("the node does not say that its state cannot be saved")
	}
	if err := errors.Join(os.Remove(file), saveState(n.revisions.dir, saved)); err != nil { // as it was on the disk
		t.Fatal(err)
	}
	if _, err := n.follow(t.Context(), n.p, nil, map[string]bool{}); err != nil {
		t.Fatal(err)
	}
	if saved, err := readState(n.revisions.dir); err != nil || len(saved) != 0 {
		t.Errorf("the plugin is gone, and %v is saved, error %v", saved, err)
	}
}
