package daemon_test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// contentTypes serves every method with an empty answer and notes the content
// types that it is called with, by method.
type contentTypes struct {
	mu   sync.Mutex
	seen map[string][]string
}

func (c *contentTypes) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	c.mu.Lock()
	got := fmt.Sprint(metadata.ValueFromIncomingContext(stream.Context(), "content-type"))
	if !slices.Contains(c.seen[method], got) {
		c.seen[method] = append(c.seen[method], got)
	}
	c.mu.Unlock()
	if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
		return err
	}
	return stream.SendMsg(new(emptypb.Empty))
}

// CRI-O accepts calls of the content type application/grpc alone. So every call of
// kubelet's and of the proxy itself has it, whether plugins hook it, the store
// follows it, or nobody looks at it.
func TestContentType(t *testing.T) {
	for way, files := range map[string]map[string]string{
		"unhooked": {}, "observed": {"10-quota.wasm": "quota"}, "hooked": {"10-noop.wasm": "noop"},
	} {
		t.Run(way, func(t *testing.T) {
			n := newNode(t)
			backend := &contentTypes{seen: map[string][]string{}}
			n.config.Backend = n.dir + "/crio.sock"
			l, err := net.Listen("unix", n.config.Backend)
			n.must(err)
			s := grpc.NewServer(grpc.UnknownServiceHandler(backend.serve))
			go s.Serve(l)
			t.Cleanup(s.Stop)
			for name, from := range files {
				n.put(name, from)
			}
			n.start(daemon.Run)
			if len(files) > 0 {
				n.await("store filled") // with the proxy's own calls
				n.await("plugins active")
			}
			for method := range cri.Shapes() {
				n.must(n.conn.Invoke(t.Context(), method, new(emptypb.Empty), new(emptypb.Empty)))
			}
			backend.mu.Lock()
			defer backend.mu.Unlock()
			for _, method := range slices.Sorted(maps.Keys(cri.Shapes())) {
				if got := backend.seen[method]; !slices.Equal(got, []string{"[application/grpc]"}) {
					t.Errorf("%s was called with content types %v", method, got)
				}
			}
		})
	}
}
