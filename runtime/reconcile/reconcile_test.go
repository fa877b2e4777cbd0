package reconcile

import (
	"os"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// What plugins may know of the runtime is asked again when it is back: it may be
// absent at first, and another version later.
func TestNodeIsDescribedAgain(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r, err := Open(t.Context(), new(config.Config), DefaultTiming(), observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := proxy.Dial(dir + "/runtime.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r.Connect(conn, runtimeapi.NewRuntimeServiceClient(conn))
	r.Following.Store(true)
	r.Backend.Describe(t.Context())
	if got := *r.Backend.Node.Load(); got.RuntimeName != "" {
		t.Errorf("without a runtime: %+v", got)
	}
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + dir + "/runtime.sock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && r.Backend.Node.Load().RuntimeName == ""; time.Sleep(10 * time.Millisecond) {
		r.Refill(t.Context()) // until the connection is up
	}
	if got := *r.Backend.Node.Load(); got.RuntimeName != apitest.FakeRuntimeName {
		t.Errorf("with a runtime: %+v", got)
	}
}
