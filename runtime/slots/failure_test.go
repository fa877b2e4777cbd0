package slots

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// An owner that hangs is a reason for which the proxy is not ready, and one that has ended is none.
func TestMissingOfAnOwnerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unconnected(t)
		s.events, s.ended = make(chan func(context.Context)), make(chan struct{})
		go func() { <-s.events }() // it takes one question, and answers none
		missing := func(why bool) []string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.Missing(ctx, why, true)
		}
		for range 2 {
			if got := missing(true); !slices.Equal(got, []string{"the owner of the plugins does not answer: context deadline exceeded"}) {
				t.Errorf("got %q", got)
			}
		}
		if got := missing(false); !slices.Equal(got, []string{"the owner of the plugins does not answer"}) {
			t.Errorf("without why: got %q", got)
		}
		close(s.ended)
		if got := missing(true); len(got) > 0 {
			t.Errorf("at the end: got %q", got)
		}
	})
}

// TestSinceWhenAVersionStays: a shadow, which is not among what is saved of a version, does not make it another one.
func TestSinceWhenAVersionStays(t *testing.T) {
	s := followed(t)
	const settings = `{"shadow": {"wasm-module": "10-a.wasm"}}`
	s.file("10-a.wasm", "noop")
	s.file("10-a.json", settings)
	list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
	saved, err := registry.Dirs{Plugins: s.dir}.Restore(list[0].File, settings, list[0].Digest, "")
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	s.slots.post(func(context.Context) {
		s.slots.good = map[string]lastgood.Version{"10-a": {Description: saved, Since: since}}
	})
	s.put(nil)
	s.put(map[string]string{"10-a.json": `{"shadow": {"wasm-module": "10-a.wasm", "sample": 50}}`})
	p := s.put(map[string]string{"10-a.json": "{"}).Plugins[0]
	if p.Failure == nil || !strings.Contains(p.Failure.Meanwhile, " of 2020-01-01T00:00:00Z stays active") || p.Shadow == nil {
		t.Errorf("a version that has been active since %v has the shadow %+v, and %+v", since, p.Shadow, p.Failure)
	}
}

// TestMissingInOrder: what is wrong is told in the same order each time, also of plugins that are switched off.
func TestMissingInOrder(t *testing.T) {
	s := followed(t)
	var want []string
	for i := range 10 {
		id := fmt.Sprintf("%d0-off", i)
		s.file(id+".wasm", "noop")
		s.file(id+".json", `{"enabled": false}`)
		want = append(want, "plugin "+id)
	}
	s.put(nil)
	for i := range 10 {
		s.file(fmt.Sprintf("%d0-off.json", i), "{")
	}
	list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
	for i := range list {
		list[i].Disabled = true // as the watcher says of files that were good before
	}
	s.slots.post(func(ctx context.Context) { s.slots.update(ctx, registry.List{Plugins: list, Complete: true}) })
	got := s.slots.Missing(t.Context(), false, true)
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], ":")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
