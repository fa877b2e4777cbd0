package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// The variables that ask for traces, and those that are not valid. No error quotes a header.
func TestWanted(t *testing.T) {
	type variables = map[string]string
	const endpoint = "http://localhost:4317"
	for _, c := range []struct {
		set  variables
		want bool
		err  string // part of it
	}{
		{variables{}, false, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, false, ""},
		{variables{"OTEL_TRACES_EXPORTER": "console"}, false, "OTEL_TRACES_EXPORTER"},
		{variables{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}, true, ""},
		{variables{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint}, true, ""},
		{variables{"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_SDK_DISABLED": "TRUE"}, false, ""},
		{variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, true, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{ // the SDK reads it, too, and would write it to stderr
			variables{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@local host", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint},
			true, "OTEL_EXPORTER_OTLP_ENDPOINT",
		},
		{variables{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT": "1s", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "9"}, true, "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, true, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret,x=1"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "x=1,secret"}, true, "OTEL_EXPORTER_OTLP_HEADERS: header 2"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "x=%zzsecret"}, true, "OTEL_EXPORTER_OTLP_HEADERS: header 1"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/none"}, true, "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_CERTIFICATE": "tracing.go"}, true, "there is no certificate in the file"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE": "tracing.go"}, true, "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "sometimes"}, true, "OTEL_TRACES_SAMPLER"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "1"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, true, "OTEL_BSP_MAX_QUEUE_SIZE"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2x"}, true, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_SCHEDULE_DELAY": "0"}, true, "OTEL_BSP_SCHEDULE_DELAY"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, true, "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_BSP_EXPORT_TIMEOUT": "30s"}, true, "OTEL_BSP_EXPORT_TIMEOUT"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many"}, true, "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1k"}, true, "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "-1"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_COMPRESSION": "GZIP"}, true, "OTEL_EXPORTER_OTLP_COMPRESSION"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_INSECURE": "1"}, true, "OTEL_EXPORTER_OTLP_TRACES_INSECURE"},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_INSECURE": "True"}, true, ""},
		{variables{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "yes"}, true, "OTEL_SDK_DISABLED"},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range c.set {
				t.Setenv(name, value)
			}
			got, err := wanted()
			switch {
			case (err != nil) != (c.err != ""), err != nil && !strings.Contains(err.Error(), c.err), err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("%v: %v, want %q", c.set, err, c.err)
			case got != c.want:
				t.Errorf("%v: %v", c.set, got)
			}
		})
	}
}

// failing is a collector that refuses everything.
type failing struct{ sdktrace.SpanExporter }

func (failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	return errors.New("refused")
}

// Spans that cannot be sent are one event a minute, with the number of all since the last one.
func TestSpansNotSentOnceAMinute(t *testing.T) {
	var seen observe.Recorder
	e := &exporter{SpanExporter: tracetest.NewNoopExporter(), observer: &seen}
	batch := tracetest.SpanStubs{{}, {}}.Snapshots()
	export := func() {
		if err := e.ExportSpans(t.Context(), batch); err != nil {
			t.Errorf("the SDK gets the error %v", err)
		}
	}
	export()
	e.SpanExporter = failing{}
	for range 3 {
		export()
	}
	if all := observe.All[*observe.SpansNotSent](seen.Take()); len(all) != 1 || all[0].Spans != 2 {
		t.Errorf("events of 3 failures: %v", all)
	}
	e.next = time.Now() // a minute later
	export()
	if all := observe.All[*observe.SpansNotSent](seen.Take()); len(all) != 1 || all[0].Spans != 6 || all[0].Err == nil {
		t.Errorf("events a minute later: %v", all)
	}
	export()
	e.next, e.SpanExporter = time.Now(), tracetest.NewNoopExporter() // a minute later, and the collector takes spans again
	export()
	if all := observe.All[*observe.SpansNotSent](seen.Take()); len(all) != 1 || all[0].Spans != 2 || all[0].Err == nil {
		t.Errorf("events once spans are sent again: %v", all)
	}
	e.SpanExporter = failing{}
	export()
	if e.end() == nil || len(seen.Take()) != 0 {
		t.Error("the end does not tell of spans that no event told of")
	}
}

// The id of a trace is read from a traceparent, and from nothing that is none.
func TestTraceID(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for parent, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":                       id,
		"00-" + id + "-00f067aa0ba902b7-00":                       id,
		"00-" + id + "-00f067aa0ba902b7":                          "",
		"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01":  "",
		"00-" + strings.ToUpper(id) + "-00f067aa0ba902b7-01":      "",
		"00-" + strings.Repeat("\"", 32) + "-00f067aa0ba902b7-01": "",
		strings.Repeat("x", 60):                                   "",
		"":                                                        "",
	} {
		if got := TraceID(metadata.NewIncomingContext(t.Context(), metadata.Pairs(traceparent, parent))); got != want {
			t.Errorf("%q: %q, want %q", parent, got, want)
		}
	}
	two := metadata.Pairs(traceparent, "00-"+id+"-00f067aa0ba902b7-01", traceparent, "00-"+id+"-00f067aa0ba902b7-01")
	if got := TraceID(metadata.NewIncomingContext(t.Context(), two)); got != "" {
		t.Errorf("of two: %q", got)
	}
	if got := TraceID(t.Context()); got != "" {
		t.Errorf("of none: %q", got)
	}
}

// A call that is part of another one has that as parent, whatever the metadata of both name.
func TestCallInACall(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(traceparent, parent))
	outer := trace.SpanContextFromContext(ofCaller(ctx)).WithSpanID(trace.SpanID{1})
	inner := ofCaller(trace.ContextWithSpanContext(ctx, outer))
	if got := trace.SpanContextFromContext(inner); !got.Equal(outer) {
		t.Errorf("the parent is %v, want %v", got, outer)
	}
}

// A call that panics has a span, which does not quote what the panic says.
func TestSpanOfAPanic(t *testing.T) {
	to := tracetest.NewInMemoryExporter()
	traces := &Traces{tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(to)).Tracer("")}
	func() {
		defer func() { _ = recover() }()
		_, _ = traces.Around(method, func(context.Context, *cri.Call, cri.Next) (*cri.Frame, error) { panic("hunter2") })(t.Context(), nil, nil)
	}()
	all := to.GetSpans()
	if len(all) != 1 || all[0].Status.Code != codes.Error || strings.Contains(fmt.Sprintf("%+v", all), "hunter2") {
		t.Errorf("the spans are %+v", all)
	}
}
