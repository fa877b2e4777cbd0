package slots

import (
	"context"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
	"github.com/wasmproxy/wasmproxy/runtime/reconcile"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// openSlots returns Slots that serve nobody, with what they need of a daemon, and what closes all of it.
func openSlots(t *testing.T, c *config.Config, engine wasm.Options) (s *Slots, closeAll func()) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	engine.Observer = observe.Discard()
	wasms, err := wasm.NewEngine(t.Context(), engine)
	must(err)
	r, err := reconcile.Open(t.Context(), c, reconcile.DefaultTiming(), observe.Discard())
	must(err)
	conn, err := proxy.Dial(c.Backend)
	must(err)
	r.Connect(conn, runtimeapi.NewRuntimeServiceClient(conn))
	s, err = New(Options{
		Config: c, Observer: observe.Discard(), Loader: loader.New(loader.Options{Config: c, Engine: wasms, Observer: observe.Discard()}),
		Reconciler: r, FirstSyncTime: FirstSyncTime, Stopping: make(chan struct{}),
	})
	must(err)
	return s, func() {
		t.Helper()
		if !s.Close(context.Background()) {
			t.Error("the slots do not end")
		}
		must(wasms.Close(context.Background()))
		must(r.Close())
		s.Save(context.Background())
		must(conn.Close())
	}
}

// settle waits until no load, introduction or fill is under way.
func (s *Slots) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for busy := true; busy; time.Sleep(time.Millisecond) {
		busy, _ = ask(ctx, s, func() (bool, error) { return s.store == filling || s.awaits(), nil })
		if ctx.Err() != nil {
			t.Fatal("the slots do not come to rest")
		}
	}
}
