package observe_test

import (
	"context"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

func TestRecorderKeepsACopyOfACall(t *testing.T) {
	var r observe.Recorder
	about := observe.Object{Pod: "web"}
	called := &observe.HookCalled{Plugin: "10-a", Subject: &about}
	observe.Sinks{observe.Discard(), &r}.Observe(t.Context(), called)
	*called, about = observe.HookCalled{}, observe.Object{}
	all := observe.All[*observe.HookCalled](r.Take())
	if len(all) != 1 || all[0].Plugin != "10-a" || all[0].About().Pod != "web" {
		t.Errorf("the recorder has %+v", all)
	}
	if len(r.Take()) != 0 {
		t.Error("an event was taken twice")
	}
}

func TestRecorderWaits(t *testing.T) {
	var r observe.Recorder
	removed := func(e observe.Event) bool { _, ok := e.(*observe.PluginRemoved); return ok }
	go func() {
		r.Observe(t.Context(), &observe.PluginLoading{})
		r.Observe(t.Context(), &observe.PluginRemoved{Plugin: "10-a"})
	}()
	if e, err := r.Wait(t.Context(), removed); err != nil || e.(*observe.PluginRemoved).Plugin != "10-a" {
		t.Errorf("waited for %v, %v", e, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := r.Wait(ctx, func(observe.Event) bool { return false }); err == nil {
		t.Error("waiting for nothing ended without an error")
	}
}

func TestSinksWantWhatOneOfThemWants(t *testing.T) {
	for _, test := range []struct {
		name  string
		sinks observe.Observer
		want  bool
	}{
		{"none", observe.Discard(), false},
		{"two that discard", observe.Sinks{observe.Discard(), observe.Discard()}, false},
		{"a recorder", observe.Sinks{observe.Discard(), &observe.Recorder{}}, true},
	} {
		if got := test.sinks.Wants(observe.KindHookCalled); got != test.want {
			t.Errorf("%s: wants a call: %v", test.name, got)
		}
	}
}
