// Package collector receives the traces of a proxy that is measured, as a node's collector would,
// and drops them.
package collector

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// Serve takes spans by OTLP over gRPC until SIGTERM, and then prints how many they were. It writes
// its URL to a file.
func Serve(file string) error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server, c := grpc.NewServer(), &counter{}
	coltracepb.RegisterTraceServiceServer(server, c)
	context.AfterFunc(ctx, server.Stop)
	if err := os.WriteFile(file, []byte("http://"+lis.Addr().String()), 0o600); err != nil {
		return err
	}
	err = server.Serve(lis)
	fmt.Println(c.spans.Load())
	return err
}

type counter struct {
	coltracepb.UnimplementedTraceServiceServer
	spans atomic.Int64
}

// Export implements coltracepb.TraceServiceServer.
func (c *counter) Export(_ context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	for _, of := range req.ResourceSpans {
		for _, s := range of.ScopeSpans {
			c.spans.Add(int64(len(s.Spans)))
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}
