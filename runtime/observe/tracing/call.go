package tracing

import (
	"context"
	"strings"

	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/code"
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
		of, span := t.tracer.Start(ofCaller(ctx), name, options...)
		if !span.IsRecording() {
			return inner(ctx, call, next)
		}
		result := codes.Internal // of a panic
		defer func() {
			text := code.Code(result).String()
			span.SetAttributes(semconv.RPCResponseStatusCode(text))
			switch result { // of which OpenTelemetry says that they are the server's errors
			case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
				// The message is not part of it: the backend wrote it, and it may hold a secret of the container.
				span.SetAttributes(semconv.ErrorTypeKey.String(text))
				span.SetStatus(otelcodes.Error, "")
			}
			span.End()
		}()

		md, ok := metadata.FromOutgoingContext(of) // a copy
		if !ok {
			md = metadata.MD{}
		}
		md.Delete(tracestate)
		parent := propagation.MapCarrier{} // of what the backend makes of the call
		propagation.TraceContext{}.Inject(of, parent)
		for key, value := range parent {
			md.Set(key, value)
		}
		answer, err = inner(metadata.NewOutgoingContext(of, md), call, next)
		result = status.Code(err)
		return answer, err
	}
}

// ofCaller returns ctx with the span of the caller. It has that already if the call is part of another one,
// such as the second call of a request to Docker. Else it is the one that the metadata name, if they name one.
func ofCaller(ctx context.Context) context.Context {
	parent := metadata.ValueFromIncomingContext(ctx, traceparent)
	if len(parent) != 1 || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		traceparent: parent[0], tracestate: strings.Join(metadata.ValueFromIncomingContext(ctx, tracestate), ","),
	})
}

// TraceID returns the id of the trace that the call ctx belongs to, also where no traces are
// made; empty if there is none.
func TraceID(ctx context.Context) string {
	if of := trace.SpanContextFromContext(ofCaller(ctx)); of.IsValid() {
		return of.TraceID().String()
	}
	return ""
}
