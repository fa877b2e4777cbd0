package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// Wants implements observe.Observer.
func (t *Traces) Wants(k observe.Kind) bool { return k == observe.KindHookCalled }

// Observe implements observe.Observer. A plugin's span has that of its call as parent, which
// ctx has. A post hook's span begins after its parent has ended.
func (t *Traces) Observe(ctx context.Context, e observe.Event) {
	called, ok := e.(*observe.HookCalled)
	if !ok || !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	all := append(make([]attribute.KeyValue, 0, 11), // an event holds no secret
		attribute.String("wasmproxy.plugin", called.Plugin),
		attribute.String("wasmproxy.hook", called.Hook.String()),
		attribute.String("wasmproxy.outcome", string(called.Outcome)),
		attribute.Int64("wasmproxy.fuel", called.Fuel),
		attribute.Int64("wasmproxy.host_calls", called.HostCalls),
		attribute.Int("wasmproxy.changes", called.Changes),
	)
	if called.Outcome == observe.Rejected {
		all = append(all, attribute.String("wasmproxy.reason", called.Err.Error()))
	}
	about := observe.ObjectOf(called.Subject)
	for _, a := range [...]attribute.KeyValue{
		semconv.K8SNamespaceName(about.Namespace), semconv.K8SPodName(about.Pod),
		semconv.K8SContainerName(about.Container), semconv.ContainerID(about.ContainerID),
	} {
		if a.Value.AsString() != "" {
			all = append(all, a)
		}
	}
	_, span := t.tracer.Start(ctx, called.Hook.String()+" "+called.Plugin, trace.WithTimestamp(called.Start), trace.WithAttributes(all...))
	if called.Outcome == observe.Failed {
		span.SetAttributes(semconv.ErrorTypeKey.String(string(called.Class)))
		span.SetStatus(otelcodes.Error, called.Err.Error())
	}
	span.End(trace.WithTimestamp(called.Start.Add(called.Duration)))
}
