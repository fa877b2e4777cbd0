package daemon_test

import (
	"context"
	"encoding/hex"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// collector is an OTLP receiver on a TCP socket.
type collector struct {
	coltracepb.UnimplementedTraceServiceServer
	mu       sync.Mutex
	received []*tracepb.ResourceSpans
}

func (c *collector) Export(_ context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, req.ResourceSpans...)
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

// newCollector starts a collector, and makes it that of daemons that start later.
func newCollector(t testing.TB) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &collector{}, grpc.NewServer()
	coltracepb.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	return c
}

// spans returns those of a trace.
func (c *collector) spans(trace string) (all []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.received {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				if trace == "" || hex.EncodeToString(s.TraceId) == trace {
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// text is all that the collector has received.
func (c *collector) text() (text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.received {
		text += prototext.Format(of)
	}
	return text
}

func attribute(all []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	if i := slices.IndexFunc(all, func(a *commonpb.KeyValue) bool { return a.Key == key }); i >= 0 {
		return all[i].Value
	}
	return nil
}

// noted are the metadata that a container runtime gets, by the method.
type noted struct {
	mu   sync.Mutex
	last map[string]metadata.MD
}

// noteMetadata puts a server before the node's fake runtime that notes the metadata of calls.
func (n *node) noteMetadata() *noted {
	n.t.Helper()
	calls := &noted{last: map[string]metadata.MD{}}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		calls.mu.Lock()
		calls.last[path.Base(info.FullMethod)] = md
		calls.mu.Unlock()
		return handler(ctx, req)
	}))
	runtimeapi.RegisterRuntimeServiceServer(server, n.runtime)
	n.config.Backend = n.dir + "/noting.sock"
	l, err := net.Listen("unix", n.config.Backend)
	n.must(err)
	go func() { _ = server.Serve(l) }()
	n.t.Cleanup(server.Stop)
	return calls
}

func (c *noted) of(method string) metadata.MD {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[method]
}

// tracedBy returns the context of a call whose caller has this span.
func tracedBy(ctx context.Context, traceparent string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", traceparent, "tracestate", "vendor=1,other=2")
}

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	sampled      = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// createTraced creates a container that has a secret.
func (n *node) createTraced(ctx context.Context) error {
	_, err := n.kubelet.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: "pod",
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "main"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
			Envs: []*runtimeapi.KeyValue{{Key: "TOKEN", Value: []byte("hunter2")}},
		},
		SandboxConfig: podNamed("web"),
	})
	return err
}

// A hooked call continues the caller's trace: its span is the child of the caller's, and the
// parent of the plugin's and of those that the container runtime makes.
func TestTraceContinuesTheCallers(t *testing.T) {
	got := newCollector(t)
	n := newNode(t)
	backend := n.noteMetadata()
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	n.must(n.createTraced(tracedBy(t.Context(), sampled)))
	n.end() // which sends the spans
	all := got.spans(callersTrace)
	if len(all) != 2 {
		t.Fatalf("%d spans, want 2: %s", len(all), got.text())
	}
	slices.SortFunc(all, func(a, b *tracepb.Span) int { return int(a.Kind) - int(b.Kind) })
	hook, call := all[0], all[1]
	if parent := hex.EncodeToString(call.ParentSpanId); parent != callersSpan || call.Kind != tracepb.Span_SPAN_KIND_SERVER {
		t.Errorf("the parent of the call is %s: %v", parent, call)
	}
	for key, want := range map[string]string{
		"rpc.system.name": "grpc", "rpc.method": "runtime.v1.RuntimeService/CreateContainer", "rpc.response.status_code": "OK",
	} {
		if a := attribute(call.Attributes, key); a.GetStringValue() != want {
			t.Errorf("%s of the call is %v, want %s", key, a, want)
		}
	}
	if !slices.Equal(hook.ParentSpanId, call.SpanId) {
		t.Errorf("the parent of the plugin's span is not the call's: %v", hook)
	}
	for key, want := range map[string]string{
		"wasmproxy.plugin": "10-quota", "wasmproxy.hook": "PreCreateContainer", "wasmproxy.outcome": "ok", "k8s.container.name": "main",
	} {
		if a := attribute(hook.Attributes, key); a.GetStringValue() != want {
			t.Errorf("%s of the plugin is %v, want %s", key, a, want)
		}
	}
	for _, key := range []string{"wasmproxy.fuel", "wasmproxy.host_calls"} {
		if a := attribute(hook.Attributes, key); a.GetIntValue() <= 0 {
			t.Errorf("%s of the plugin is %v", key, a)
		}
	}
	want := "00-" + callersTrace + "-" + hex.EncodeToString(call.SpanId) + "-01"
	if md := backend.of("CreateContainer"); !slices.Equal(md["traceparent"], []string{want}) || strings.Join(md["tracestate"], ",") != "vendor=1,other=2" {
		t.Errorf("the runtime gets %v, want traceparent %s", md, want)
	}
	if text := got.text(); strings.Contains(text, "hunter2") || strings.Contains(text, "TOKEN") {
		t.Errorf("the spans have the container's secret:\n%s", text)
	}
	if service := attribute(got.received[0].Resource.Attributes, "service.name"); service.GetStringValue() != "wasmproxy" {
		t.Errorf("service.name is %v", service)
	}
}

// The metadata of a call that no plugin hooks, or that its caller does not sample, pass as they
// came, and the call has no span.
func TestTraceOfOtherCallsPasses(t *testing.T) {
	got := newCollector(t)
	n := newNode(t)
	backend := n.noteMetadata()
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	_, err := n.kubelet.UpdateRuntimeConfig(tracedBy(t.Context(), sampled), &runtimeapi.UpdateRuntimeConfigRequest{}) // whose bytes are copied
	n.must(err)
	_, err = n.kubelet.RunPodSandbox(tracedBy(t.Context(), sampled), &runtimeapi.RunPodSandboxRequest{Config: podNamed("web")}) // which the store reads
	n.must(err)
	unsampled := strings.TrimSuffix(sampled, "1") + "0"
	n.must(n.createTraced(tracedBy(t.Context(), unsampled)))
	n.end()
	for method, want := range map[string]string{"UpdateRuntimeConfig": sampled, "RunPodSandbox": sampled, "CreateContainer": unsampled} {
		md := backend.of(method)
		if !slices.Equal(md["traceparent"], []string{want}) || !slices.Equal(md["tracestate"], []string{"vendor=1,other=2"}) {
			t.Errorf("of %s the runtime gets %v, want traceparent %s", method, md, want)
		}
	}
	if all := got.spans(""); len(all) > 0 {
		t.Errorf("there are spans: %v", all)
	}
}

// A refused call is a span with its code, and the plugin's has the reason. Without a caller's
// span it is the first of its trace, and so it is if the caller's is not valid.
func TestTraceOfARefusedCall(t *testing.T) {
	got := newCollector(t)
	n := newNode(t)
	n.put("10-reject.wasm", "reject")
	n.start(daemon.Run)
	n.awaitActive("10-reject")
	for _, ctx := range []context.Context{t.Context(), tracedBy(t.Context(), "00-"+callersTrace+"-0000000000000000-01")} {
		if err := n.createTraced(ctx); err == nil {
			t.Fatal("the plugin does not refuse")
		}
	}
	n.end()
	all := got.spans("")
	if len(all) != 4 || len(got.spans(callersTrace)) != 0 {
		t.Fatalf("%d spans, want 4 of other traces: %s", len(all), got.text())
	}
	for _, s := range all {
		key, want := "wasmproxy.outcome", "rejected"
		if s.Kind == tracepb.Span_SPAN_KIND_SERVER {
			key, want = "rpc.response.status_code", "FAILED_PRECONDITION"
			if len(s.ParentSpanId) > 0 {
				t.Errorf("the call has a parent: %v", s)
			}
		} else if attribute(s.Attributes, "wasmproxy.reason").GetStringValue() == "" {
			t.Errorf("the plugin's span has no reason: %v", s)
		}
		if a := attribute(s.Attributes, key); a.GetStringValue() != want {
			t.Errorf("%s is %v, want %s", key, a, want)
		}
	}
}

// A collector that takes connections and never answers delays neither calls nor, by more than a
// second, the shutdown.
func TestTraceCollectorHangs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+l.Addr().String())
	n := newNode(t)
	n.put("10-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("10-quota")
	for range 20 {
		n.must(n.createTraced(tracedBy(t.Context(), sampled)))
	}
	start := time.Now()
	n.end()
	if took := time.Since(start); wallClock() && took > 3*time.Second {
		t.Errorf("the daemon ends after %v", took)
	}
	n.await("failed to close", "sending the last spans to the collector")
}

// Variables that are not valid are a warning, and calls are served without traces.
func TestTracesOff(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	n := serving(t, map[string]string{"10-quota.wasm": "quota"})
	n.awaitActive("10-quota")
	n.must(n.createTraced(tracedBy(t.Context(), sampled)))
	if want := "OTEL_EXPORTER_OTLP_PROTOCOL"; !strings.Contains(n.log.String(), "no traces are made") || !strings.Contains(n.log.String(), want) {
		t.Errorf("the log does not name %s:\n%s", want, n.log)
	}
}
