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
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
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
	t := &Traces{exporter: &exporter{SpanExporter: otlp, observer: observer}}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithBatcher(t.exporter), sdktrace.WithResource(about))
	t.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(version), trace.WithSchemaURL(semconv.SchemaURL))
	return t, nil
}

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

// Wants implements observe.Observer.
func (t *Traces) Wants(k observe.Kind) bool { return k == observe.KindHookCalled }

// Observe implements observe.Observer. A plugin's span has that of its call as parent, which
// ctx has. A post hook's span begins after its parent has ended.
func (t *Traces) Observe(ctx context.Context, e observe.Event) {
	called, ok := e.(*observe.HookCalled)
	if !ok || !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := t.tracer.Start(ctx, called.Hook.String()+" "+called.Plugin,
		trace.WithTimestamp(called.Start), trace.WithAttributes(attributesOf(called)...))
	if called.Outcome == observe.Failed {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(called.Class)))
		span.SetStatus(codes.Error, called.Err.Error())
	}
	span.End(trace.WithTimestamp(called.Start.Add(called.Duration)))
}

// attributesOf are what an event tells of a plugin's hook. An event holds no secret.
func attributesOf(called *observe.HookCalled) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("wasmproxy.plugin", called.Plugin),
		attribute.String("wasmproxy.hook", called.Hook.String()),
		attribute.String("wasmproxy.outcome", string(called.Outcome)),
		attribute.Int64("wasmproxy.fuel", called.Fuel),
		attribute.Int64("wasmproxy.host_calls", called.HostCalls),
		attribute.Int("wasmproxy.changes", called.Changes),
	}
	if called.Outcome == observe.Rejected {
		all = append(all, attribute.String("wasmproxy.reason", called.Err.Error()))
	}
	about := observe.ObjectOf(called.Subject)
	for key, value := range map[attribute.Key]string{
		semconv.K8SNamespaceNameKey: about.Namespace, semconv.K8SPodNameKey: about.Pod,
		semconv.K8SContainerNameKey: about.Container, semconv.ContainerIDKey: about.ContainerID,
	} {
		if value != "" {
			all = append(all, key.String(value))
		}
	}
	return all
}
