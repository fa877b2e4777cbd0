// Package tracing makes OpenTelemetry spans of the calls that plugins have a hook in, and sends
// them to a collector by OTLP over gRPC. It is the only importer of OpenTelemetry.
//
// It is off unless the standard OTEL_ variables ask for it; see [New]. A call that no plugin
// has a hook in has no span, and its metadata passes as it came.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// scope is the name of the instrumentation.
const scope = "github.com/wasmproxy/wasmproxy"

// closeTime is how long the last spans may take to reach the collector.
const closeTime = time.Second

// Traces makes spans of calls and of plugins in them. It is an [observe.Observer], and safe for
// concurrent use. The caller must Close it.
type Traces struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	exporter *exporter
}

// New returns Traces as the OTEL_ variables of the environment want them, or nil if they want
// none: see docs/operations.md. observer gets an event if spans cannot be sent. New waits for no
// collector.
func New(ctx context.Context, version string, observer observe.Observer) (*Traces, error) {
	if wanted, err := wanted(); !wanted || err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("wasmproxy"), semconv.ServiceVersion(version)),
		resource.WithFromEnv(), // the last wins
	)
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otlp, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("making the exporter of traces: %w", err)
	}
	return start(&exporter{SpanExporter: otlp, observer: observer}, about, version), nil
}

// start returns Traces that end in the exporter.
func start(e *exporter, about *resource.Resource, version string) *Traces {
	most := sdktrace.DefaultMaxQueueSize // spans that may wait
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil {
		most = n
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithSpanProcessor(&batcher{sdktrace.NewBatchSpanProcessor(e), e, int64(most)}))
	return &Traces{
		provider: provider, exporter: e,
		tracer: provider.Tracer(scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL)),
	}
}

// Lost returns how many spans were lost since the start, because they could not be sent or too
// many waited.
func (t *Traces) Lost() int64 { return t.exporter.all.Load() }

// Close sends the spans that were not sent yet. It gives up after a second, and the error says
// why. Spans that end later are dropped.
func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	if ctx.Err() != nil { // then the exporter still tries
		err = errors.Join(err, t.exporter.SpanExporter.Shutdown(ctx))
	}
	if err = errors.Join(t.exporter.end(), err); err != nil {
		return fmt.Errorf("sending the last spans to the collector of traces: %w", err)
	}
	return nil
}
