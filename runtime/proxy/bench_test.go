package proxy_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// BenchmarkVersion is the smallest call.
//
//	go test -run - -bench . ./runtime/proxy
func BenchmarkVersion(b *testing.B) {
	everyParty(b, func(b *testing.B, client runtimeapi.RuntimeServiceClient) {
		for b.Loop() {
			if _, err := client.Version(context.Background(), &runtimeapi.VersionRequest{Version: "v1"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkList is a response of 16 MiB, as much as kubelet accepts.
func BenchmarkList(b *testing.B) {
	everyParty(b, func(b *testing.B, client runtimeapi.RuntimeServiceClient) {
		b.SetBytes(16 << 20)
		for b.Loop() {
			if _, err := client.ListContainers(context.Background(), &runtimeapi.ListContainersRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// everyParty runs f against a backend directly, through a relay that knows
// nothing but bytes, and through the proxy without and with a hook.
func everyParty(b *testing.B, f func(*testing.B, runtimeapi.RuntimeServiceClient)) {
	backend := socketPath(b)
	serveRuntime(b, backend)
	relayed := socketPath(b)
	relay(b, relayed, backend, nil)
	unhooked, _ := startProxy(b, proxy.Options{Backend: dial(b, backend)})
	opts := proxy.Options{Backend: dial(b, backend)}
	hookAll(&opts)
	hooked, _ := startProxy(b, opts)
	for _, party := range []struct{ name, path string }{
		{"direct", backend}, {"relay", relayed}, {"unhooked", unhooked}, {"hooked", hooked},
	} {
		b.Run(party.name, func(b *testing.B) {
			b.ReportAllocs()
			f(b, runtimeClient(b, party.path))
		})
	}
}

func runtimeClient(b *testing.B, path string) runtimeapi.RuntimeServiceClient {
	b.Helper()
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(32<<20)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return runtimeapi.NewRuntimeServiceClient(conn)
}

// answering is a backend that answers at once.
type answering struct {
	runtimeapi.UnimplementedRuntimeServiceServer
	list runtimeapi.ListContainersResponse
}

func (*answering) Version(context.Context, *runtimeapi.VersionRequest) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "containerd", RuntimeVersion: "v2.4.2", RuntimeApiVersion: "v1"}, nil
}

func (a *answering) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return &a.list, nil
}

func serveRuntime(b *testing.B, path string) {
	b.Helper()
	backend := new(answering)
	for range 4 << 10 {
		backend.list.Containers = append(backend.list.Containers, &runtimeapi.Container{
			Annotations: map[string]string{"size": strings.Repeat("x", 4<<10-32)},
		})
	}
	l := listen(b, path)
	s := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(s, backend)
	go s.Serve(l)
	b.Cleanup(s.Stop)
}
