package tracing

import (
	"context"
	"strings"
	"time"
	"unicode"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
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
	return func(ctx context.Context, call *cri.Call, next cri.Next) (answer *cri.Frame, err error) {
		caller := callerOf(ctx)
		of, sampled := t.begin(caller, name)
		if !sampled {
			return inner(ctx, call, next)
		}
		s := &span{method: name, of: of, parent: caller, start: time.Now(), code: codes.Internal} // of a panic
		defer func() {
			s.end = time.Now()
			t.add(s)
		}()
		answer, err = inner(asParent(trace.ContextWithSpanContext(ctx, of)), call, next)
		s.code = status.Code(err)
		return answer, err
	}
}

// begin returns the context of the span of a call, and whether the call is sampled.
func (t *Traces) begin(caller trace.SpanContext, name string) (of trace.SpanContext, sampled bool) {
	id, ctx := caller.TraceID(), context.Background()
	if caller.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, caller)
	} else {
		id = newTraceID()
	}
	result := t.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: ctx, TraceID: id, Name: name, Kind: trace.SpanKindServer})
	if result.Decision != sdktrace.RecordAndSample {
		return of, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: newSpanID(), TraceFlags: caller.TraceFlags() | trace.FlagsSampled, TraceState: result.Tracestate,
	}), true
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

// callerOf returns the span of the caller: that of the call ctx if it is part of another one, such as
// the second call of a request to Docker, else that which its metadata name; none if they name none, or
// more than one.
func callerOf(ctx context.Context) trace.SpanContext {
	if of := trace.SpanContextFromContext(ctx); of.IsValid() {
		return of
	}
	parent := metadata.ValueFromIncomingContext(ctx, traceparent)
	if len(parent) != 1 {
		return trace.SpanContext{}
	}
	of := &carrier{parent: parent[0], state: strings.Join(metadata.ValueFromIncomingContext(ctx, tracestate), ",")}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), of))
}

// asParent makes the span of ctx the parent of what the backend makes of the call.
func asParent(ctx context.Context) context.Context {
	var of carrier
	propagation.TraceContext{}.Inject(ctx, &of)
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md[traceparent] = []string{of.parent}
	delete(md, tracestate)
	if of.state != "" {
		md[tracestate] = []string{of.state}
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// carrier has the values of the two keys. It implements propagation.TextMapCarrier.
type carrier struct{ parent, state string }

// Get implements propagation.TextMapCarrier.
func (c *carrier) Get(key string) string { return *c.of(key) }

// Set implements propagation.TextMapCarrier.
func (c *carrier) Set(key, value string) { *c.of(key) = value }

// Keys implements propagation.TextMapCarrier.
func (c *carrier) Keys() []string { return []string{traceparent, tracestate} }

func (c *carrier) of(key string) *string {
	if key == traceparent {
		return &c.parent
	}
	return &c.state
}

// TraceID returns the id of the trace that the call ctx belongs to, also where no traces are
// made; empty if there is none. A call waits for it, so that it reads no more than the id.
func TraceID(ctx context.Context) string {
	if of := trace.SpanContextFromContext(ctx); of.HasTraceID() {
		return of.TraceID().String()
	}
	const version, id, span, all = 3, 35, 52, 55 // where they end
	parent := metadata.ValueFromIncomingContext(ctx, traceparent)
	if len(parent) != 1 || len(parent[0]) < all {
		return ""
	}
	if p := parent[0]; p[version-1] != '-' || p[id] != '-' || p[span] != '-' {
		return ""
	}
	if _, err := trace.TraceIDFromHex(parent[0][version:id]); err != nil {
		return ""
	}
	return parent[0][version:id]
}
