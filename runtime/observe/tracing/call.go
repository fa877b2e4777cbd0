package tracing

import (
	"context"
	"strings"
	"unicode"

	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// The keys of W3C Trace Context.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

// Around returns an interceptor that makes a span of each call of the method that is sampled.
// The span continues the caller's trace, and is the parent of what the backend makes of the
// call. A call that is not sampled goes on with its metadata as it came.
func (t *Traces) Around(method string, inner cri.Interceptor) cri.Interceptor {
	name := strings.TrimPrefix(method, "/")
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(semconv.RPCSystemNameGRPC, semconv.RPCMethod(name)),
	}
	return func(ctx context.Context, call *cri.Call, next cri.Next) (answer *cri.Frame, err error) {
		spanned, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, callerOf(ctx)), name, options...)
		if !span.IsRecording() {
			return inner(ctx, call, next)
		}
		code := codes.Internal // of a panic
		defer func() { end(span, code) }()
		answer, err = inner(asParent(spanned), call, next)
		code = status.Code(err)
		return answer, err
	}
}

// end ends the span of a call with this code. The message of the status is not part of it: the
// backend wrote it, and it may hold a secret of the container.
func end(span trace.Span, code codes.Code) {
	text := textOf(code)
	span.SetAttributes(semconv.RPCResponseStatusCode(text))
	switch code { // of which OpenTelemetry says that they are the server's errors
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		span.SetAttributes(semconv.ErrorTypeKey.String(text))
		span.SetStatus(otelcodes.Error, "")
	}
	span.End()
}

// textOf returns a code as gRPC's documents spell it, such as DEADLINE_EXCEEDED.
func textOf(code codes.Code) string {
	switch code {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	}
	var text strings.Builder
	for i, r := range code.String() {
		if i > 0 && unicode.IsUpper(r) {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToUpper(r))
	}
	return text.String()
}

// callerOf returns the span of the caller, which the metadata of the call ctx names; none if
// they name none, or more than one.
func callerOf(ctx context.Context) trace.SpanContext {
	parent := metadata.ValueFromIncomingContext(ctx, traceparent)
	if len(parent) != 1 {
		return trace.SpanContext{}
	}
	of := propagation.MapCarrier{traceparent: parent[0], tracestate: strings.Join(metadata.ValueFromIncomingContext(ctx, tracestate), ",")}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), of))
}

// asParent makes the span of ctx the parent of what the backend makes of the call.
func asParent(ctx context.Context) context.Context {
	of := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, of)
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	delete(md, tracestate)
	for key, value := range of {
		md.Set(key, value)
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// TraceID returns the id of the trace that the call ctx belongs to, also where no traces are
// made; empty if there is none. A call waits for it, so that it reads no more than the id.
func TraceID(ctx context.Context) string {
	if of := trace.SpanContextFromContext(ctx); of.HasTraceID() {
		return of.TraceID().String()
	}
	const version, id, span, all = 3, 35, 52, 55 // where they end
	parent := metadata.ValueFromIncomingContext(ctx, traceparent)
	if len(parent) != 1 || len(parent[0]) < all || parent[0][version-1] != '-' || parent[0][id] != '-' || parent[0][span] != '-' {
		return ""
	}
	if _, err := trace.TraceIDFromHex(parent[0][version:id]); err != nil {
		return ""
	}
	return parent[0][version:id]
}
