package slots

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// followed is slots that follow each change of a plugin directory.
func followed(t *testing.T) *sequence {
	t.Helper()
	return followedBy(t, wasm.Options{Interpret: true})
}

// followedBy is followed with an engine.
func followedBy(t *testing.T, engine wasm.Options) *sequence {
	t.Helper()
	s := &sequence{T: t, dir: t.TempDir()}
	s.slots, s.closeAll = s.open(engine)
	ctx, cancel := context.WithCancel(t.Context())
	go s.slots.run(ctx)
	t.Cleanup(func() {
		cancel()
		<-s.slots.ended
		s.closeAll()
	})
	return s
}

// put writes files, of which a module is named by its guest, and returns the state once
// nothing is under way. A file without content is removed.
func (s *sequence) put(files map[string]string) status.Plugins {
	s.Helper()
	for name, content := range files {
		s.file(name, content)
	}
	list, _ := registry.Read(registry.Dirs{Plugins: s.dir})
	s.slots.post(func(ctx context.Context) { s.slots.update(ctx, registry.List{Plugins: list, Complete: true}) })
	s.slots.settle(s.T)
	snapshot, err := s.slots.Plugins(context.Background())
	if err != nil {
		s.Fatal("the slots have ended")
	}
	return snapshot
}

// parts are what must not be touched in a plugin that has not changed.
type parts struct {
	version    *version       // with its ticks
	loaded     *loader.Loaded // with its instances and its breaker
	persistent loader.Persistent
}

func (s *sequence) parts(id string) (p parts) {
	done := make(chan struct{})
	s.slots.post(func(context.Context) {
		slot := s.slots.all[id]
		p = parts{slot.active, slot.active.loaded, slot.persistent}
		close(done)
	})
	<-done
	return p
}

// A new generation is published exactly when the set of active or refusing plugins has
// changed, and touches no plugin that has not: neither its version with its ticks and
// instances, nor its breaker, nor its key-value state.
func TestGenerationsFollowTheSetOfPlugins(t *testing.T) {
	s := followed(t)
	at := s.put(map[string]string{
		"10-ticker.wasm": "ticker", "20-counter.wasm": "counter", "20-counter.json": `{"grant": ["state.kv"]}`, "30-it.wasm": "noop",
	}).Generation
	others := []string{"10-ticker", "20-counter"}
	before := []parts{s.parts(others[0]), s.parts(others[1])}
	for _, step := range []struct {
		what        string
		files       map[string]string
		generations uint64
	}{
		{"the same content again", map[string]string{"30-it.wasm": "noop"}, 0},
		{"another module", map[string]string{"30-it.wasm": "quota"}, 1},
		{"a broken module", map[string]string{"30-it.wasm": "wrong-signature"}, 0},
		{"another broken module", map[string]string{"30-it.wasm": "missing-hook"}, 0},
		{"the module before them", map[string]string{"30-it.wasm": "quota"}, 0},
		{"another policy", map[string]string{"30-it.json": `{"failure-policy": "Fail"}`}, 1},
		{"another configuration", map[string]string{"30-it.json": `{"failure-policy": "Fail", "config": 1}`}, 1},
		{"a broken file", map[string]string{"30-it.json": `{`}, 0},
		{"a removal", map[string]string{"30-it.json": "", "30-it.wasm": ""}, 1},
		{"a new plugin", map[string]string{"40-new.wasm": "noop"}, 1},
		{"a new plugin that cannot be had", map[string]string{"50-bad.wasm": "missing-hook"}, 0},
		{"a new plugin that must not be ignored: it refuses, then is active", map[string]string{"60-fail.json": `{"failure-policy": "Fail"}`, "60-fail.wasm": "quota"}, 2},
		{"a new plugin that must not be ignored and cannot be had: it refuses until its load has failed", map[string]string{"70-bad.json": `{"failure-policy": "Fail"}`, "70-bad.wasm": "wrong-signature"}, 2},
		{"its removal", map[string]string{"70-bad.json": "", "70-bad.wasm": ""}, 0},
		{"two new plugins at once", map[string]string{"80-a.wasm": "ticker", "81-b.json": `{"enabled": false}`, "81-b.wasm": "noop"}, 1},
	} {
		got := s.put(step.files).Generation
		if got-at != step.generations {
			t.Errorf("%s: %d generations, want %d", step.what, got-at, step.generations)
		}
		at = got
		for i, id := range others {
			if s.parts(id) != before[i] {
				t.Errorf("%s: %s was touched", step.what, id)
			}
		}
	}
}

// timeless leaves times and what differs between runs out of a comparison.
var timeless = cmp.Options{cmpopts.IgnoreFields(status.Plugin{}, "Since", "Instances", "Memory", "Counts"), cmpopts.IgnoreFields(status.Version{}, "Since"), cmpopts.IgnoreFields(status.FileFailure{}, "Since")}

// A snapshot says of each plugin what calls meet, and of each version how far it has come.
func TestSnapshot(t *testing.T) {
	s := followed(t)
	start := time.Now()
	got := s.put(map[string]string{
		"10-good.wasm": "quota", "10-good.json": `{"dry-run": true}`,
		"20-bad.wasm":  "wrong-signature",
		"30-fail.wasm": "missing-hook", "30-fail.json": `{"failure-policy": "Fail", "runtime-hooks": ["PreExec"]}`,
		"40-off.wasm": "noop", "40-off.json": `{"enabled": false}`,
		"50-server.json": `{"remote-endpoint": "/run/none.sock", "runtime-hooks": ["PreRunPodSandbox"]}`,
	})
	for _, p := range got.Plugins {
		if p.State == status.Disabled {
			continue
		}
		for _, since := range []time.Time{p.Since, versionOf(p).Since} {
			if since.Before(start) || since.After(time.Now()) {
				t.Errorf("%s: since %v", p.ID, since)
			}
		}
	}
	good := got.Plugins[0].Active.Digest
	if with, without := got.Plugins[0].Active.Settings, got.Plugins[1].Pending.Settings; len(with) != 64 || without != "" {
		t.Errorf("digests of the settings: %q with a JSON file, %q without", with, without)
	}
	want := []status.Plugin{
		{
			ID: "10-good", File: s.dir + "/10-good.wasm", Kind: "wasm", State: status.Active, Policy: "Ignore", DryRun: true, Breaker: "closed",
			Hooks: []string{"PreCreateContainer"}, Active: &status.Version{Name: "quota", Version: "1.0.0", State: "active"},
		},
		{
			ID: "20-bad", File: s.dir + "/20-bad.wasm", Kind: "wasm", State: status.Inactive, Policy: "Ignore",
			Pending: &status.Version{State: "failed", Reason: "loading plugin 20-bad: it imports wp1.get as (i32, i32, i32) -> i32, but it is (i32, i32, i32, i32) -> i32"},
			Failure: &status.FileFailure{Error: "loading plugin 20-bad: it imports wp1.get as (i32, i32, i32) -> i32, but it is (i32, i32, i32, i32) -> i32", Meanwhile: "the plugin is not loaded"},
		},
		{
			ID: "30-fail", File: s.dir + "/30-fail.wasm", Kind: "wasm", State: status.Inactive, Policy: "Fail",
			Pending: &status.Version{State: "failed", Reason: "loading plugin 30-fail: it does not export wp_hook (i32) -> i32"},
			Failure: &status.FileFailure{Error: "loading plugin 30-fail: it does not export wp_hook (i32) -> i32", Meanwhile: "the plugin is not loaded"},
		},
		{
			ID: "50-server", File: s.dir + "/50-server.json", Kind: "hook server", State: status.Active, Policy: "Ignore", Breaker: "closed",
			Hooks: []string{"PreRunPodSandbox"}, Active: &status.Version{Name: "50-server", State: "active"},
		},
		{ID: "40-off", File: s.dir + "/40-off.wasm", Kind: "wasm", State: status.Disabled, Policy: "Ignore"},
	}
	if diff := cmp.Diff(want, got.Plugins, timeless, cmpopts.IgnoreFields(status.Version{}, "Digest", "Settings")); diff != "" {
		t.Errorf("the snapshot is (-want +got):\n%s", diff)
	}
	s.put(map[string]string{"10-good.wasm": "wrong-signature"})
	got = s.put(map[string]string{"20-bad.wasm": "noop"})
	if p := got.Plugins[0]; p.State != status.Active || p.Active.Digest != good || p.Pending == nil || p.Pending.State != "failed" || p.Pending.Digest == good {
		t.Errorf("with a broken replacement: %+v, active %+v, pending %+v", p, p.Active, p.Pending)
	}
	got = s.put(map[string]string{"50-server.json": "{"})
	if f := got.Plugins[3].Failure; f == nil || !strings.HasPrefix(f.Meanwhile, "the version of 20") {
		t.Errorf("a hook server, which has no version, with a bad file: %+v", f)
	}
	if p := got.Plugins[1]; p.State != status.Active || p.Pending != nil || !slices.Contains(p.Hooks, "PreCreateContainer") {
		t.Errorf("once it is mended: %+v", p)
	}
}

// version is the one that the plugin has.
func versionOf(p status.Plugin) *status.Version {
	if p.Active != nil {
		return p.Active
	}
	return p.Pending
}
