package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
)

// module begins as a module does.
const module = "\x00asm\x01\x00\x00\x00"

// shelf is revisions on a real disk, whose content and modules are those of the test.
func shelf(t *testing.T, spec v1alpha1.RevisionSpec) (r revisions, name string, content *[]byte) {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if name, err = v1alpha1.RevisionName("50-p", spec); err != nil {
		t.Fatal(err)
	}
	content = &text
	return revisions{
		dir:     t.TempDir(),
		content: func(context.Context, string) ([]byte, error) { return *content, nil },
		pull:    func(context.Context, string) ([]byte, error) { return []byte(module), nil },
		try:     func(context.Context, string, string) error { return nil },
		labels:  func() map[string]string { return map[string]string{"pool": "batch"} },
		guard:   guard{trust: trust.NewFile(filepath.Join(t.TempDir(), "trust.yaml"))},
	}, name, content
}

func TestFetch(t *testing.T) {
	r, name, _ := shelf(t, v1alpha1.RevisionSpec{Artifact: "r/p@sha256:1", Settings: &v1alpha1.Settings{Timeout: "1s", Config: []byte(`{"a": 1}`)}})
	if r.has(name) {
		t.Error("a revision is there before it was fetched")
	}
	if err := r.fetch(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	has, err := r.load(name)
	if err != nil || has.plugin.ID != "50-p" || !strings.Contains(string(has.plugin.Text), `"timeout": "1s"`) {
		t.Errorf("what was fetched is %+v (%v)", has, err)
	}
	if got, err := r.module(name); err != nil || string(got) != module {
		t.Errorf("the module is %q (%v)", got, err)
	}
	var off struct{ Enabled *bool }
	if err := json.Unmarshal(has.disabled, &off); err != nil || off.Enabled == nil || *off.Enabled {
		t.Errorf("the file that switches the plugin off is %s (%v)", has.disabled, err)
	}
	if err := os.WriteFile(r.path(name, "50-p.wasm"), []byte(module+"!"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.module(name); err == nil {
		t.Error("a module that has changed on disk is delivered")
	}
}

// TestChangedOnDisk fetches a revision again that has changed on the disk, as after a loss of power.
func TestChangedOnDisk(t *testing.T) {
	r, name, _ := shelf(t, v1alpha1.RevisionSpec{Artifact: "r/p@sha256:1"})
	a := &Agent{revisions: r, fetcher: &fetcher{}, loaded: map[string]loaded{}}
	for _, file := range []string{specFile, "50-p.wasm", "50-p.json"} {
		if err := r.fetch(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.path(name, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := a.load(name); err == nil {
			t.Errorf("a revision whose %s is empty is loaded", file)
		}
		if err := r.fetch(t.Context(), name); err != nil {
			t.Errorf("fetching a revision whose %s is empty: %v", file, err)
		}
		if _, err := a.load(name); err != nil {
			t.Errorf("a revision whose %s was empty: %v", file, err)
		}
		clear(a.loaded)
	}
}

// TestRemovedByHalf fetches a revision again whose directory is still there, as after an agent that was killed while it removed it.
func TestRemovedByHalf(t *testing.T) {
	r, name, _ := shelf(t, v1alpha1.RevisionSpec{Artifact: "r/p@sha256:1"})
	for range 2 {
		if err := r.fetch(t.Context(), name); err != nil || !r.has(name) {
			t.Fatalf("the revision is there: %v, error %v", r.has(name), err)
		}
		if err := os.Remove(r.path(name, specFile)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFetchRefuses leaves nothing under the revision's name, and says whether another try can help.
func TestFetchRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*revisions, *[]byte)
		refused bool
	}{
		{"content that is not of this name", func(_ *revisions, content *[]byte) { *content = []byte(`{"artifact": "r/other@sha256:1"}`) }, true},
		{"content that is not JSON", func(_ *revisions, content *[]byte) { *content = []byte(`{`) }, true},
		{"a registry that lies", func(r *revisions, _ *[]byte) {
			r.pull = func(context.Context, string) ([]byte, error) { return nil, fmt.Errorf("pulling: %w", oci.ErrContent) }
		}, true},
		{"a registry that is away", func(r *revisions, _ *[]byte) {
			r.pull = func(context.Context, string) ([]byte, error) { return nil, errors.New("connection refused") }
		}, false},
		{"a module that the proxy would not load", func(r *revisions, _ *[]byte) {
			r.try = func(context.Context, string, string) error { return fmt.Errorf("%w: no hook", errRefused) }
		}, true},
	} {
		r, name, content := shelf(t, v1alpha1.RevisionSpec{Artifact: "r/p@sha256:1"})
		test.change(&r, content)
		if err := r.fetch(t.Context(), name); err == nil || errors.Is(err, errRefused) != test.refused {
			t.Errorf("%s: %v", test.name, err)
		}
		if entries, err := os.ReadDir(r.dir); err != nil || len(entries) > 0 {
			t.Errorf("%s: it leaves %v (%v)", test.name, entries, err)
		}
	}
}

// TestFetchNotSelected asks no registry for what is not for the node.
func TestFetchNotSelected(t *testing.T) {
	for pool, selects := range map[string]bool{"batch": true, "web": false} {
		r, name, _ := shelf(t, v1alpha1.RevisionSpec{
			Artifact: "r/p@sha256:1", NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": pool}},
		})
		pulled := false
		r.pull = func(context.Context, string) ([]byte, error) { pulled = true; return []byte(module), nil }
		err := r.fetch(t.Context(), name)
		if pulled != selects || errors.Is(err, errNotSelected) == selects || r.has(name) != selects {
			t.Errorf("a revision for the pool %s: pulled %v, %v", pool, pulled, err)
		}
		f := &fetcher{changed: make(chan struct{}, 1)}
		if one := new(fetching); !f.answer(one, err) {
			t.Errorf("a revision for the pool %s is fetched again", pool)
		}
	}
}

// TestFetcherTriesAgain until there is an answer, and after a refusal now and then: the proxy may have been upgraded. A try
// that fails in between says nothing new.
func TestFetcherTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lost, tries := errors.New("connection refused"), atomic.Int64{}
		answers := []error{lost, errRefused, lost, errRefused, nil}
		f := &fetcher{changed: make(chan struct{}, 1), known: map[string]*fetching{}, has: func(string) bool { return false }, failed: func() {},
			fetch: func(context.Context, string) error {
				return answers[min(int(tries.Add(1)), len(answers))-1]
			}}
		after := func(wait time.Duration) (bool, error) {
			f.want(ctx, "r1", 0)
			time.Sleep(wait)
			synctest.Wait()
			f.keep(map[string]bool{"r1": true})
			return f.want(ctx, "r1", 0)
		}
		if done, err := after(time.Minute); !done || !errors.Is(err, errRefused) || tries.Load() != 2 {
			t.Errorf("after %d tries the answer is %v, %v", tries.Load(), done, err)
		}
		if done, err := after(time.Hour); !done || !errors.Is(err, errRefused) || tries.Load() < 3 {
			t.Errorf("a refusal that is still wanted is %v, %v after %d tries", done, err, tries.Load())
		}
		if done, err := after(3 * time.Hour); !done || err != nil || int(tries.Load()) != len(answers) {
			t.Errorf("a node whose proxy was upgraded has %v, %v after %d tries", done, err, tries.Load())
		}
		f.keep(nil)
		if done, _ := f.want(ctx, "r1", 0); done {
			t.Error("a revision that nobody wanted any more is known")
		}
		synctest.Wait()
	})
}
