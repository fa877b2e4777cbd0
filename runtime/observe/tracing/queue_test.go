package tracing

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// held is a collector that answers nothing until it is released.
type held struct {
	release chan struct{}
	sent    atomic.Int64
}

func (h *held) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	<-h.release
	h.sent.Add(int64(len(spans)))
	return nil
}

func (h *held) Shutdown(context.Context) error { return nil }

const (
	aTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	method = "/runtime.v1.RuntimeService/CreateContainer"
)

// from returns the context of a call whose caller has this traceparent.
func from(t *testing.T, parent string) context.Context {
	ctx := metadata.NewOutgoingContext(t.Context(), metadata.Pairs(traceparent, parent, "x-request", "1"))
	return metadata.NewIncomingContext(ctx, metadata.Pairs(traceparent, parent))
}

func startedWith(e sdktrace.SpanExporter, observer observe.Observer) (traces *Traces, call func(context.Context)) {
	traces = start(&exporter{SpanExporter: e, observer: observer}, resource.Empty(), "v1")
	return traces, traces.around()
}

// around returns a call that does nothing else.
func (t *Traces) around() func(context.Context) {
	around := t.Around(method, func(context.Context, *cri.Call, cri.Next) (*cri.Frame, error) { return nil, nil })
	return func(ctx context.Context) { _, _ = around(ctx, nil, nil) }
}

// While the collector takes nothing, calls go on, and the spans that too many wait for are counted.
func TestSpansOfAFullQueueAreCounted(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	var seen observe.Recorder
	to := &held{release: make(chan struct{})}
	traces, call := startedWith(to, &seen)
	const calls = 50
	for range calls {
		call(from(t, "00-"+aTrace+"-00f067aa0ba902b7-01"))
	}
	if lost := traces.Lost(); lost < calls-10 {
		t.Errorf("%d spans are lost of %d, of which 4 may wait", lost, calls)
	}
	close(to.release)
	_ = traces.Close() // the error tells of the spans that no event told of
	if sent, lost := to.sent.Load(), traces.Lost(); sent < 4 || sent+lost != calls {
		t.Errorf("of %d spans %d are sent and %d are lost", calls, sent, lost)
	}
	if all := observe.All[*observe.SpansNotSent](seen.Take()); len(all) != 1 || !errors.Is(all[0].Err, errFull) {
		t.Errorf("events: %v", all)
	}
}

// A call waits for little on account of its span.
func TestAllocationsOfASampledCall(t *testing.T) {
	traces := &Traces{tracer: sdktrace.NewTracerProvider().Tracer("")} // which sends nothing meanwhile
	call := traces.around()
	allocations := func(flags string) float64 {
		ctx := from(t, "00-"+aTrace+"-00f067aa0ba902b7-"+flags)
		return testing.AllocsPerRun(100, func() { call(ctx) })
	}
	if sampled, other := allocations("01"), allocations("00"); sampled-other > 20 || sampled <= other {
		t.Errorf("a sampled call has %v allocations, another %v", sampled, other)
	}
}

// OTEL_TRACES_SAMPLER decides which calls are sampled, by that of the caller or without it.
func TestSampler(t *testing.T) {
	for _, c := range []struct {
		name, arg                 string
		root, ofSampled, ofOthers bool
		err                       string
	}{
		{"", "", true, true, false, ""},
		{"always_on", "", true, true, true, ""},
		{"always_off", "", false, false, false, ""},
		{"parentbased_always_on", "", true, true, false, ""},
		{"PARENTBASED_ALWAYS_OFF", "", false, true, false, ""},
		{"traceidratio", "", true, true, true, ""},
		{"traceidratio", "0", false, false, false, ""},
		{"parentbased_traceidratio", "0.0", false, true, false, ""},
		{"parentbased_traceidratio", "1.5", false, false, false, "OTEL_TRACES_SAMPLER_ARG"},
		{"traceidratio", "NaN", false, false, false, "OTEL_TRACES_SAMPLER_ARG"},
		{" always_on", "", true, true, true, ""},
		{"parentbased_", "", false, false, false, "OTEL_TRACES_SAMPLER: \"parentbased_\""},
	} {
		t.Run(c.name+" "+c.arg, func(t *testing.T) {
			t.Setenv("OTEL_TRACES_SAMPLER", c.name)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.arg)
			if err := checkSampler(); c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, want %s", err, c.err)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			traces, _ := startedWith(tracetest.NewNoopExporter(), observe.Discard())
			defer func() { _ = traces.Close() }()
			sampled := func(ctx context.Context) (is bool) {
				_, _ = traces.Around(method, func(ctx context.Context, _ *cri.Call, _ cri.Next) (*cri.Frame, error) {
					is = trace.SpanContextFromContext(ctx).IsSampled()
					return nil, nil
				})(ctx, nil, nil)
				return is
			}
			const caller = "00-" + aTrace + "-00f067aa0ba902b7-"
			root, ofSampled, ofOthers := sampled(t.Context()), sampled(from(t, caller+"01")), sampled(from(t, caller+"00"))
			if root != c.root || ofSampled != c.ofSampled || ofOthers != c.ofOthers {
				t.Errorf("root %v, of a sampled caller %v, of another %v", root, ofSampled, ofOthers)
			}
		})
	}
}
