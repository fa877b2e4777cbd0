package koord_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW19Metadata sends gRPC metadata, such as a trace's, and wants the
// runtime's back. koord-runtime-proxy drops both.
func TestW19Metadata(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	tests(t, map[string]scenario{
		"plain": {incumbent: `traceparent: got \[\]`, run: func(n *node) error {
			n.start()
			return n.traced(trace, "Version", func(ctx context.Context, o ...grpc.CallOption) error {
				_, err := n.kubelet.Version(ctx, &cri.VersionRequest{}, o...)
				return err
			})
		}},
		"hooked": {incumbent: `traceparent: got \[\]`, run: func(n *node) error {
			n.serve("10-a.json", answering(&podResponse{Annotations: map[string]string{"a": "1"}}), "Fail", "PreRunPodSandbox")
			n.start()
			return n.traced(trace, "RunPodSandbox", func(ctx context.Context, o ...grpc.CallOption) error {
				_, err := n.kubelet.RunPodSandbox(ctx, runRequest(), o...)
				return err
			})
		}},
	})
}

func (n *node) traced(trace, method string, call func(context.Context, ...grpc.CallOption) error) error {
	ctx, cancel := n.timed()
	defer cancel()
	var header, trailer metadata.MD
	if err := call(metadata.AppendToOutgoingContext(ctx, "traceparent", trace), grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		return n.well(err)
	}
	calls := n.runtime.calls(method)
	return join(
		want("traceparent", calls[len(calls)-1].metadata.Get("traceparent"), []string{trace}),
		want("the runtime's header", header.Get("runtime-header"), []string{method}),
		want("the runtime's trailer", trailer.Get("runtime-trailer"), []string{method}),
	)
}
