package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// A module on which the engine panics is one plugin that does not load. No
// module does that to the engine there is, so there is none here.
func TestPanicWhileLoading(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "10-bad.wasm"), []byte("\x00asm\x01\x00\x00\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	found, problems := registry.Read(registry.Dirs{Plugins: dir})
	if len(found) != 1 || len(problems) > 0 {
		t.Fatal(found, problems)
	}
	l := &loader{observer: observe.Discard(), modules: modules{}} // without an engine
	if _, err := l.open(t.Context(), found[0], newPersistent(), false); err == nil || !strings.Contains(err.Error(), "loading plugin 10-bad: panic") {
		t.Errorf("error %v", err)
	}
}

// What plugins may know of the runtime is asked again when it is back: it may be
// absent at first, and another version later.
func TestNodeIsDescribedAgain(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := observe.Discard()
	d, err := open(t.Context(), &config.Config{Backend: dir + "/runtime.sock"}, log, options{engine: wasm.Options{Observer: log}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	d.following.Store(true)
	d.backend.describe(t.Context())
	if got := *d.backend.node.Load(); got.RuntimeName != "" {
		t.Errorf("without a runtime: %+v", got)
	}
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + dir + "/runtime.sock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && d.backend.node.Load().RuntimeName == ""; time.Sleep(10 * time.Millisecond) {
		d.refill(t.Context()) // until the connection is up
	}
	if got := *d.backend.node.Load(); got.RuntimeName != apitest.FakeRuntimeName {
		t.Errorf("with a runtime: %+v", got)
	}
}

// What comes of one load costs the same however many other plugins there are: a thousand broken
// ones do not keep a good one from counting.
func TestTurnDoesNotLookAtEveryPlugin(t *testing.T) {
	log := observe.Discard()
	d, err := open(t.Context(), &config.Config{Backend: t.TempDir() + "/none.sock"}, log, options{engine: wasm.Options{Observer: log}})
	if err != nil {
		t.Fatal(err)
	}
	list := registry.List{Complete: true}
	d.slots.good = map[string]lastgood.Version{} // such refuse their hooks also after a load has failed
	for i := range 1000 {
		broken := registry.Description{ID: fmt.Sprint(i), File: fmt.Sprint("/none/", i, ".wasm"), Policy: plugin.Fail}
		list.Plugins = append(list.Plugins, broken)
		d.slots.good[broken.ID] = lastgood.Version{Description: broken}
	}
	d.slots.update(t.Context(), list)
	for _, p := range d.slots.order {
		d.slots.fail(t.Context(), p, p.next, errors.New("broken"))
	}
	d.slots.reconcile(t.Context())
	if n := len(d.slots.published); n != len(list.Plugins) {
		t.Errorf("%d of %d refuse", n, len(list.Plugins))
	}
	again := func() {
		p := d.slots.all["7"]
		d.slots.fail(t.Context(), p, p.next, errors.New("broken as before"))
		d.slots.reconcile(t.Context())
	}
	if n := testing.AllocsPerRun(10, again); n > 100 {
		t.Errorf("a turn after one failure makes %v allocations", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.slots.run(ctx)
	d.close()
}
