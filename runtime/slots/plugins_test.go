package slots

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// What comes of one load costs the same however many other plugins there are: a thousand broken
// ones do not keep a good one from counting.
func TestTurnDoesNotLookAtEveryPlugin(t *testing.T) {
	s, closeAll := openSlots(t, &config.Config{Backend: t.TempDir() + "/none.sock"}, wasm.Options{})
	list := registry.List{Complete: true}
	s.good = map[string]lastgood.Version{} // such refuse their hooks also after a load has failed
	for i := range 1000 {
		broken := registry.Description{ID: fmt.Sprint(i), File: fmt.Sprint("/none/", i, ".wasm"), Policy: plugin.Fail}
		list.Plugins = append(list.Plugins, broken)
		s.good[broken.ID] = lastgood.Version{Description: broken}
	}
	s.update(t.Context(), list)
	for _, p := range s.order {
		p.fail(t.Context(), p.next, errors.New("broken"))
	}
	s.reconcile(t.Context())
	if n := len(s.published); n != len(list.Plugins) {
		t.Errorf("%d of %d refuse", n, len(list.Plugins))
	}
	again := func() {
		p := s.all["7"]
		p.fail(t.Context(), p.next, errors.New("broken as before"))
		s.reconcile(t.Context())
	}
	if n := testing.AllocsPerRun(10, again); n > 100 {
		t.Errorf("a turn after one failure makes %v allocations", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.run(ctx)
	closeAll()
}
