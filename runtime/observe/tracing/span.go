package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// gatherTime is how long spans are gathered before they are made. A call that finds others waiting
// wakes nobody.
const gatherTime = 100 * time.Millisecond

// errFull is why a span is lost that was not tried.
var errFull = errors.New("spans come faster than they can be sent")

// span is a span that waits to be made.
type span struct {
	parent trace.SpanContext

	// Of a call:
	method     string
	of         trace.SpanContext
	start, end time.Time
	code       codes.Code

	called *observe.HookCalled // a plugin's hook; nil of a call
}

// add has a span made and sent. It waits for nothing: if too many wait, the span is lost.
func (t *Traces) add(s *span) {
	select {
	case t.queue <- s:
	default:
		t.dropped.Add(1)
		t.exporter.all.Add(1)
	}
}

// run makes the spans that wait, until closing is closed.
func (t *Traces) run() {
	defer close(t.closed)
	for ended := false; !ended; {
		select {
		case s := <-t.queue:
			t.make(s)
		case <-t.closing:
		}
		select {
		case <-time.After(gatherTime):
		case <-t.closing:
			ended = true
		}
		for len(t.queue) > 0 {
			t.make(<-t.queue)
		}
		if dropped := int(t.dropped.Swap(0)); dropped > 0 {
			t.exporter.notSent(context.Background(), dropped, errFull)
		}
	}
}

// make makes a span, and hands it to the SDK, which waits as long as it sends earlier ones.
func (t *Traces) make(s *span) {
	ctx := context.Background()
	if s.called != nil {
		t.makeHook(trace.ContextWithSpanContext(ctx, s.parent), s.called)
		return
	}
	if s.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	text := textOf(s.code)
	_, made := t.tracer.Start(context.WithValue(ctx, idKey{}, s.of), s.method,
		trace.WithTimestamp(s.start), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.RPCSystemNameGRPC, semconv.RPCMethod(s.method), semconv.RPCResponseStatusCode(text)))
	switch s.code { // of which OpenTelemetry says that they are the server's errors
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		// The message is not part of it: the backend wrote it, and it may hold a secret of the container.
		made.SetAttributes(semconv.ErrorTypeKey.String(text))
		made.SetStatus(otelcodes.Error, "")
	}
	made.End(trace.WithTimestamp(s.end))
}

func (t *Traces) makeHook(ctx context.Context, called *observe.HookCalled) {
	_, made := t.tracer.Start(ctx, called.Hook.String()+" "+called.Plugin,
		trace.WithTimestamp(called.Start), trace.WithAttributes(attributesOf(called)...))
	if called.Outcome == observe.Failed {
		made.SetAttributes(semconv.ErrorTypeKey.String(string(called.Class)))
		made.SetStatus(otelcodes.Error, called.Err.Error())
	}
	made.End(trace.WithTimestamp(called.Start.Add(called.Duration)))
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

// idKey is the context's key of the context that a call's span has had since the call began.
type idKey struct{}

// ids gives a span the ids that the backend was told, and new ones where there are none. It
// implements sdktrace.IDGenerator.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if of, ok := ctx.Value(idKey{}).(trace.SpanContext); ok {
		return of.TraceID(), of.SpanID()
	}
	return newTraceID(), newSpanID()
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if of, ok := ctx.Value(idKey{}).(trace.SpanContext); ok {
		return of.SpanID()
	}
	return newSpanID()
}

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
