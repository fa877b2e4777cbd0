package reconcile

import (
	"errors"
	"os"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/enforce"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// open returns a reconciler, and the directory of its state in state and of the socket of a runtime that is not there, runtime.sock.
func open(t *testing.T, timing Timing) (r *Reconciler, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wp") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if r, err = Open(t.Context(), &config.Config{StateDir: dir + "/state"}, timing, observe.Discard()); err != nil {
		t.Fatal(err)
	}
	conn, err := proxy.Dial(dir + "/runtime.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r.Connect(conn, runtimeapi.NewRuntimeServiceClient(conn))
	return r, dir
}

// What plugins may know of the runtime is asked again when it is back: it may be
// absent at first, and another version later.
func TestNodeIsDescribedAgain(t *testing.T) {
	r, dir := open(t, DefaultTiming())
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
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && r.Backend.Node.Load().RuntimeName == ""; time.Sleep(10 * time.Millisecond) {
		r.Refill(t.Context()) // until the connection is up
	}
	if got := *r.Backend.Node.Load(); got.RuntimeName != apitest.FakeRuntimeName {
		t.Errorf("with a runtime: %+v", got)
	}
}

// What the runtime did not answer of the node while the store was filled is asked again, though the connection stays.
func TestScansDescribeTheNode(t *testing.T) {
	r, dir := open(t, Timing{ScanPeriod: 10 * time.Millisecond})
	runtime := fake.NewFakeRemoteRuntime()
	if err := runtime.Start("unix://" + dir + "/runtime.sock"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(runtime.Stop)
	go r.scanFiles(t.Context())
	for end := time.Now().Add(time.Minute); r.Backend.Node.Load().RuntimeName == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the runtime was not asked")
		}
	}
}

func TestScansKeepTheJournal(t *testing.T) {
	r, dir := open(t, Timing{ScanPeriod: 10 * time.Millisecond})
	journal := dir + "/state/journal"
	wish := enforce.Wish{Plugin: "10-a", Hook: abi.PreStartContainer, Value: "1", At: time.Now()}
	r.Ledger.Record(enforce.ID{Pod: "u1"}).Ask(enforce.Asked{Target: enforce.File("cpu.idle"), Wish: wish})
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	go r.scanFiles(t.Context())
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := os.Stat(journal)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestWayToTheState: the directory of the state is the proxy's alone, and not the one above it, which has the sockets as well.
func TestWayToTheState(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/usual", 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), &config.Config{StateDir: dir + "/run/state"}, DefaultTiming(), observe.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	usual, err1 := os.Stat(dir + "/usual")
	above, err2 := os.Stat(dir + "/run")
	state, err3 := os.Stat(dir + "/run/state")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if above.Mode() != usual.Mode() || state.Mode().Perm() != 0o700 {
		t.Errorf("the state has mode %v, and what is above it %v", state.Mode(), above.Mode())
	}
}
