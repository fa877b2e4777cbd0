package tracing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// repeatTime is the time between two events about spans that cannot be sent.
const repeatTime = time.Minute

// errFull is why a span is lost that was not tried.
var errFull = errors.New("spans come faster than they can be sent")

// batcher is the SDK's, but for spans that come while its queue is full: the SDK would not tell how many it drops.
type batcher struct {
	sdktrace.SpanProcessor
	exporter *exporter
	most     int64 // spans that may wait
}

// OnEnd implements sdktrace.SpanProcessor. It waits for nothing.
func (b *batcher) OnEnd(s sdktrace.ReadOnlySpan) {
	if b.exporter.waiting.Add(1) > b.most {
		b.exporter.waiting.Add(-1)
		b.exporter.notSent(context.Background(), 1, errFull)
		return
	}
	b.SpanProcessor.OnEnd(s)
}

// exporter makes events of errors, which the SDK would give to a handler of the whole process.
type exporter struct {
	sdktrace.SpanExporter
	observer observe.Observer
	waiting  atomic.Int64 // spans that the batcher has
	all      atomic.Int64 // spans that were lost since the start

	mu    sync.Mutex
	lost  int       // spans since the last event
	next  time.Time // when the next event is due
	ended bool      // no event is made any more
	last  error     // of the last spans that were lost
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.waiting.Add(-int64(len(spans)))
	err, lost := e.SpanExporter.ExportSpans(ctx, spans), 0
	if err != nil {
		lost = len(spans)
	}
	e.notSent(ctx, lost, err)
	return nil
}

// notSent counts spans that were lost, if there are any, and makes an event of those that none told of, if one is due.
func (e *exporter) notSent(ctx context.Context, spans int, err error) {
	e.all.Add(int64(spans))
	e.mu.Lock()
	lost := 0
	if spans > 0 {
		e.lost, e.last = e.lost+spans, err
	}
	last := e.last
	if e.lost > 0 && !e.ended && !time.Now().Before(e.next) {
		lost, e.lost, e.next = e.lost, 0, time.Now().Add(repeatTime)
	}
	e.mu.Unlock() // before an observer runs
	if lost > 0 {
		e.observer.Observe(ctx, &observe.SpansNotSent{Spans: lost, Err: last})
	}
}

// end ends the events, and returns the last error since then that no event told of.
func (e *exporter) end() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.lost == 0 {
		return nil
	}
	return e.last
}
