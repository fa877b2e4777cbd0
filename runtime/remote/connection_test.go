package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
)

// TestServerErrorIsAFault wants the server's words and nothing that could be
// taken for a refusal or for the call's own status.
func TestServerErrorIsAFault(t *testing.T) {
	p := plugged(t, hookServer{container: func(context.Context, string, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		return nil, status.Error(codes.PermissionDenied, "no, "+strings.Repeat("never ", 1000))
	}})
	_, err := ask(t, p, newEvent(abi.PreCreateContainer))
	if err == nil || !strings.Contains(err.Error(), "hook.sock: PermissionDenied: no, never") {
		t.Fatalf("error %v", err)
	}
	if len(err.Error()) > 2000 {
		t.Errorf("error has %d bytes", len(err.Error()))
	}
	if refused := new(plugin.Rejection); errors.As(err, &refused) {
		t.Error("error is a rejection")
	}
	if s, ok := status.FromError(err); ok {
		t.Errorf("error carries the server's status %v", s)
	}
}

// TestServerThatWaited tells for what it has waited in vain, long before its own time is over.
func TestServerThatWaited(t *testing.T) {
	p := plugged(t, hookServer{container: func(context.Context, string, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		return nil, fmt.Errorf("reading the topology: %w", context.DeadlineExceeded)
	}})
	_, err := ask(t, p, newEvent(abi.PreCreateContainer))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "reading the topology") {
		t.Errorf("error %v", err)
	}
}

// TestUnavailableServer is there, whatever it says.
func TestUnavailableServer(t *testing.T) {
	p := plugged(t, hookServer{container: func(context.Context, string, *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		return nil, status.Error(codes.Unavailable, "come back later")
	}})
	if _, err := ask(t, p, newEvent(abi.PreCreateContainer)); err == nil || errors.Is(err, plugin.ErrAway) {
		t.Errorf("error %v", err)
	}
}

// TestHungServer gives up when the caller's time is over, and not before.
func TestHungServer(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	p := plugged(t, hookServer{container: func(ctx context.Context, _ string, _ *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		return nil, hang(ctx)
	}})
	deadline, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Call(deadline, nil, newEvent(abi.PreCreateContainer), plugin.NewAdjustment(abi.PreCreateContainer, 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := p.Call(gone, nil, newEvent(abi.PreCreateContainer), plugin.NewAdjustment(abi.PreCreateContainer, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestSilentServer accepts connections and says nothing, not even HTTP/2.
func TestSilentServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := connect(t, socket).Call(ctx, nil, newEvent(abi.PreCreateContainer), plugin.NewAdjustment(abi.PreCreateContainer, 0)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestAbsentServer fails the call without waiting for what may never come.
func TestAbsentServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := connect(t, socket).Call(ctx, nil, newEvent(abi.PreCreateContainer), plugin.NewAdjustment(abi.PreCreateContainer, 0))
	if !errors.Is(err, plugin.ErrAway) || ctx.Err() != nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("error %v", err)
	}
}

// TestOddSocketPaths dials what the path says, however it looks in a URL.
func TestOddSocketPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"//hook.sock", "/%zz?a#b.sock", "/a b:c.sock"} {
		serve(t, dir+name, echoing())
		if _, err := ask(t, connect(t, dir+name), newEvent(abi.PreCreateContainer)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRestartedServer is used again soon after it is back, although it was away
// long enough for the back-off to be at its longest. gRPC's own would wait for
// several seconds by then.
func TestRestartedServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	stop := serve(t, socket, echoing())
	p := connect(t, socket)
	call := func() error { _, err := ask(t, p, newEvent(abi.PreCreateContainer)); return err }
	if err := call(); err != nil {
		t.Fatal(err)
	}
	stop()
	attempts, away := hangUp(t, socket)
	for i := range 200 { // 4 s
		if call() == nil {
			t.Fatal("a server that is gone answers")
		}
		if i == 100 {
			attempts.Store(0)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n := attempts.Load(); n < 3 { // two seconds hold four of at most 500 ms
		t.Errorf("%d attempts in two seconds", n)
	}
	away()
	serve(t, socket, echoing())
	back := time.Now()
	for call() != nil {
		if time.Since(back) > time.Minute {
			t.Fatal("not used again")
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("used after %v", time.Since(back))
}

// hangUp accepts connections and closes them until stop is called.
func hangUp(t *testing.T, socket string) (attempts *atomic.Int64, stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	attempts = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			attempts.Add(1)
			conn.Close()
		}
	}()
	return attempts, func() { listener.Close(); <-done }
}

// TestServerThatHangsUp says that it speaks HTTP/2, and ends the connection. It is connected to again, but not without a pause.
func TestServerThatHangsUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := listener.(*net.UnixListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p, err := remote.New(remote.Options{ID: "koordlet", Endpoint: socket, Hooks: remote.Hooks(), Returned: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	for range 6 {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // a frame of settings that are the defaults
		conn.Read(make([]byte, 24))                   // what a client says first
		conn.Close()
	}
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("6 connections in %v, want 100 ms between two", took)
	}
}

// TestHammer calls from many goroutines while the server comes and goes.
func TestHammer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "hook.sock")
	p := connect(t, socket)
	var answered, failed atomic.Int64
	var callers sync.WaitGroup
	done, cancel := context.WithCancel(t.Context())
	for range 8 {
		callers.Go(func() {
			for done.Err() == nil {
				ev := newEvent(abi.PreCreateContainer)
				adj := plugin.NewAdjustment(ev.hook, 2)
				switch err := p.Call(t.Context(), nil, ev, adj); {
				case err != nil:
					failed.Add(1)
					time.Sleep(time.Millisecond)
				case len(adj.Changes()) != 0:
					t.Errorf("an echo set %v", asked(adj.Changes()))
				default:
					answered.Add(1)
				}
			}
		})
	}
	for range 4 {
		stop := serve(t, socket, echoing())
		enough := answered.Load() + 200
		for end := time.Now().Add(time.Minute); answered.Load() < enough; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the server is back, and no calls are answered")
				break
			}
		}
		stop()
	}
	cancel()
	callers.Wait()
	t.Logf("%d calls answered, %d failed", answered.Load(), failed.Load())
}

// chain runs ev through plugins and returns who changed what.
func chain(t *testing.T, ev *event, members ...plugin.Member) ([]plugin.Owned, error) {
	t.Helper()
	for i := range members {
		members[i].Hooks, members[i].Capabilities = abi.HookSetOf(ev.hook), abi.AllCapabilities
	}
	log := slogsink.New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	return plugin.NewChain(log, 2, members...).Dispatch(t.Context(), nil, ev)
}

// TestChain wants two servers in one chain: the second is sent what the first
// set, its echo of that is no conflict, and another value is.
func TestChain(t *testing.T) {
	first := plugged(t, answering(&pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: 77}}))
	var seen int64
	echo := echoing()
	second := plugged(t, hookServer{container: func(ctx context.Context, m string, req *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		seen = req.GetContainerResources().GetCpuShares()
		return echo.container(ctx, m, req)
	}})
	owned, err := chain(t, newEvent(abi.PreCreateContainer), plugin.Member{ID: "10", Plugin: first}, plugin.Member{ID: "20", Plugin: second, Policy: plugin.Fail})
	if err != nil || len(owned) != 1 || owned[0].Plugin != "10" || seen != 77 {
		t.Errorf("%v, %v, the second saw %d shares", owned, err, seen)
	}
	third := plugged(t, answering(&pb.ContainerResourceHookResponse{ContainerResources: &runtimeapi.LinuxContainerResources{CpuShares: 78}}))
	_, err = chain(t, newEvent(abi.PreCreateContainer), plugin.Member{ID: "10", Plugin: first}, plugin.Member{ID: "30", Plugin: third, Policy: plugin.Fail})
	if conflict := new(plugin.ConflictError); !errors.As(err, &conflict) || conflict.First != "10" {
		t.Errorf("error %v, want a conflict with 10", err)
	}
}

// TestTimeoutAndPolicy: the chain's time limit ends the call of a hung server,
// and its policy says what becomes of that.
func TestTimeoutAndPolicy(t *testing.T) {
	hung := plugged(t, hookServer{container: func(ctx context.Context, _ string, _ *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	member := plugin.Member{ID: "10", Plugin: hung, Timeout: 50 * time.Millisecond}
	if owned, err := chain(t, newEvent(abi.PreCreateContainer), member); err != nil || len(owned) != 0 {
		t.Errorf("under Ignore: %v, %v", owned, err)
	}
	member.Policy = plugin.Fail
	_, err := chain(t, newEvent(abi.PreCreateContainer), member)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "plugin 10: PreCreateContainer: hook server ") {
		t.Errorf("under Fail: %v", err)
	}
}

// BenchmarkCall is one hook of one server, there and back.
func BenchmarkCall(b *testing.B) {
	p := plugged(b, echoing())
	for b.Loop() {
		if _, err := ask(b, p, newEvent(abi.PreCreateContainer)); err != nil {
			b.Fatal(err)
		}
	}
}
