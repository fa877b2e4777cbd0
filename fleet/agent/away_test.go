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
)

// TestRegistryIsAway: a node that has switched has the stable revision on disk, and goes back to it without the registry. What runs
// is switched off even if the revision that is to run cannot be fetched.
func TestRegistryIsAway(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, ownDir)
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	content, modules, away := map[string][]byte{}, map[string][]byte{}, false
	revision := func(digest string) string {
		spec := v1alpha1.RevisionSpec{Artifact: "r.example/p@sha256:" + digest}
		name, err := v1alpha1.RevisionName("50-p", spec)
		if err == nil {
			content[name], err = json.Marshal(spec)
		}
		if err != nil {
			t.Fatal(err)
		}
		modules[spec.Artifact] = []byte("\x00asm\x01\x00\x00\x00" + digest)
		return name
	}
	stable, update := revision("1"), revision("2")
	a := &Agent{
		Options: Options{Node: "n", PluginDir: dir, Log: slog.New(slog.DiscardHandler)}, directory: delivery.Directory(dir),
		fetched: make(chan struct{}, 1), loaded: map[string]loaded{}, state: map[string]delivered{}, node: &metav1.PartialObjectMetadata{},
	}
	a.revisions = revisions{
		dir:     own,
		content: func(_ context.Context, name string) ([]byte, error) { return content[name], nil },
		pull: func(_ context.Context, artifact string) ([]byte, error) {
			if away {
				return nil, errors.New("the registry is away")
			}
			return modules[artifact], nil
		},
		try:    func(context.Context, string, string) error { return nil },
		labels: func() map[string]string { return nil },
		guard:  guard{trust.NewFile(filepath.Join(dir, "no-trust")), "", "", oci.Client{}},
	}
	a.fetcher = &fetcher{has: a.revisions.ready, fetch: a.revisions.fetch, changed: a.fetched, failed: func() {}, known: map[string]*fetching{}}
	p := &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: "50-p"}}
	await := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
			wanted := map[string]bool{}
			if _, err := a.follow(t.Context(), p, nil, wanted); err != nil {
				t.Fatal(err)
			}
			for _, has := range a.state {
				wanted[has.Revision] = true
			}
			a.fetcher.keep(wanted)
			if err := a.collect(wanted); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatalf("waiting until %s: the node has %+v", what, a.state)
			}
		}
	}
	has := func(revision string) func() bool { return func() bool { return a.state["50-p"].Revision == revision } }

	p.Status.Stable = &v1alpha1.Stable{Revision: stable}
	await("the node says that it has fetched the stable revision", func() bool {
		says, err := a.follow(t.Context(), p, nil, map[string]bool{})
		return err == nil && says != nil && says.Next != nil && says.Next.State == v1alpha1.NextFetched
	})
	if has(stable)() {
		t.Fatal("a node has a plugin before the API server knows that it may: nobody would wait for it to remove the plugin")
	}
	a.report.last = &v1alpha1.PluginNode{Plugins: []v1alpha1.PluginReport{{Name: "50-p"}}}
	await("the node has the stable revision", has(stable))
	p.Status.Update = &v1alpha1.Update{Revision: update, Canaries: []string{"n"}}
	await("the node has the update", has(update))
	away = true
	p.Status.Update = nil
	await("the node has gone back", has(stable))

	p.Status.Stable, p.Spec.Disabled = &v1alpha1.Stable{Revision: revision("3")}, true
	await("the plugin is switched off", func() bool { return a.state["50-p"].Disabled })
	if text, err := os.ReadFile(filepath.Join(dir, "50-p.json")); err != nil || !strings.Contains(string(text), `"enabled": false`) {
		t.Errorf("%v: %s", err, text)
	}
}
