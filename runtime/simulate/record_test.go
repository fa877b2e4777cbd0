package simulate

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// watchedCalls is a plugin's event that can be repeated, while w watches.
func watchedCalls(t testing.TB, w plugin.Watcher) *Simulator {
	t.Helper()
	engine, err := wasm.NewEngine(t.Context(), wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../../plugins-wasm/qos/qos.wasm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Read([]byte(pod), abi.PreCreateContainer, Setting{CgroupVersion: 2, Memory: 16 << 30})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), e, Options{ID: "10-qos", Quiet: true, Load: func(o LoadOptions) (plugin.Plugin, error) {
		p, err := engine.Load(t.Context(), "10-qos", code, wasm.PluginOptions{
			Timeout: time.Minute, // a machine that stalls breaks no limit
			Granted: o.Granted, KV: o.KV, Metrics: o.Metrics, Features: o.Features,
		})
		if err == nil && w != nil {
			p.(plugin.Watched).Watch(w)
		}
		return p, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close(t.Context())
		engine.Close(t.Context())
	})
	return s
}

// A reader that takes nothing costs no call: what it does not take is counted, and it is told.
func TestStalledReader(t *testing.T) {
	o := recording.DefaultOptions()
	o.Rate, o.For = recording.MaxRate, 0
	recorder := recording.NewRecorder(o)
	s := watchedCalls(t, recorder)
	const calls = 3000
	for range calls {
		if err := s.Call(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	dropped := recorder.Dropped()
	if dropped.Reader < calls/10 || dropped.Size > 0 {
		t.Errorf("of %d calls were dropped: %+v", calls, dropped)
	}
	var text bytes.Buffer
	if err := recorder.Write(t.Context(), &text, recording.Header{Plugin: "10-qos"}); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if end := rec.End; end == nil || end.Calls != len(rec.Calls) || end.Calls+end.Dropped.All() != calls || rec.Calls[0].Dropped != dropped {
		t.Errorf("%d calls were written, the last line is %+v", len(rec.Calls), rec.End)
	}
}

// BenchmarkCreateContainer is a call with one plugin that nobody records, that somebody records and does not read, and that somebody does.
func BenchmarkCreateContainer(b *testing.B) {
	for _, name := range []string{"nobody", "stalled", "recorded"} {
		b.Run(name, func(b *testing.B) {
			o := recording.DefaultOptions()
			o.Rate, o.Max, o.For = 1<<30, 1<<40, 1<<40
			recorder := recording.NewRecorder(o)
			var w plugin.Watcher = recorder
			switch name {
			case "nobody":
				w = nil
			case "recorded":
				go recorder.Write(b.Context(), io.Discard, recording.Header{})
			}
			s := watchedCalls(b, w)
			for b.Loop() {
				if err := s.Call(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
