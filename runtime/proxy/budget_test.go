package proxy_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

const listContainers = "/runtime.v1.RuntimeService/ListContainers"

// peak measures the most memory that the heap takes beyond now, until stop is called.
func peak(t *testing.T) (stop func() (bytes int64)) {
	t.Helper()
	var most atomic.Int64
	done := make(chan struct{})
	var watcher sync.WaitGroup
	read := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	runtime.GC()
	before := read()
	watcher.Go(func() {
		for {
			most.Store(max(most.Load(), read()-before))
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	return func() int64 {
		close(done)
		watcher.Wait()
		return most.Load()
	}
}

// packed sends messages that are gzip already.
type packed struct{}

func (packed) Type() string { return "gzip" }

func (packed) Do(w io.Writer, message []byte) error {
	_, err := w.Write(message)
	return err
}

// bomb is size zeros as gzip has them.
func bomb(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	z := stdgzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		z.Write(zeros)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGzipBomb: calls with compressed messages are refused before anything of them is read, although the
// process has gzip registered, as the program has by OpenTelemetry's exporter.
func TestGzipBomb(t *testing.T) {
	const calls, size = 12, 250 << 20
	if encoding.GetCompressor(gzip.Name) == nil {
		t.Fatal("gzip is not registered")
	}
	compressed := bomb(t, size)
	for name, change := range map[string]func(*proxy.Options){"unhooked": func(*proxy.Options) {}, "hooked": hookAll} {
		backend := socketPath(t)
		startBackend(t, backend, func(method string, _ grpc.ServerStream) error {
			t.Errorf("the backend was called: %s", method)
			return nil
		})
		opts := proxy.Options{Backend: dial(t, backend)}
		change(&opts)
		path, _ := startProxy(t, opts)
		//lint:ignore SA1019 A registered compressor would be the server's, too.
		conn := connect(t, path, grpc.WithCompressor(packed{}))
		for _, method := range []string{version, chat} {
			t.Run(name+method, func(t *testing.T) {
				stop := peak(t)
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						stream, err := conn.NewStream(withTimeout(t, time.Minute), bidi, method)
						if err == nil {
							sendAll(stream, compressed)
							_, err = receiveAll(stream)
						}
						if got := status.Convert(err); got.Code() != codes.Unimplemented || !strings.Contains(got.Message(), "turn gRPC compression off") {
							t.Errorf("the call ended with %v", err)
						}
					})
				}
				all.Wait()
				if most := stop(); most > 50<<20 {
					t.Errorf("%d calls of %d KiB made the heap grow by %d MiB", calls, len(compressed)>>10, most>>20)
				}
			})
		}
	}
}

// TestIdentity: a caller may name the encoding that compresses nothing.
func TestIdentity(t *testing.T) {
	conn := through(t, echo)
	got, err := invoke(withTimeout(t, time.Minute), conn, version, []byte("plain"), grpc.UseCompressor(encoding.Identity))
	if err != nil || string(got) != "plain" {
		t.Errorf("the caller got %q, %v", got, err)
	}
}

// stuck is a caller of its own connection that reads no answer of its streams.
// Cancelling ends those that are not among the first few.
func stuck(t *testing.T, path string, calls, few int) (streams []grpc.ClientStream, conn *grpc.ClientConn, cancel func()) {
	t.Helper()
	conn = connect(t, path)
	cancelled, cancel := context.WithCancel(withTimeout(t, 5*time.Minute))
	for i := range calls {
		ctx := cancelled
		if i < few {
			ctx = withTimeout(t, 5*time.Minute)
		}
		stream := open(t, ctx, conn, listContainers)
		if err := sendAll(stream, nil); err != nil {
			t.Fatal(err)
		}
		stream.CloseSend()
		streams = append(streams, stream)
	}
	return streams, conn, cancel
}

// large answers lists with one message of 16 MiB and everything else with a few bytes.
func large(answered *atomic.Int64) func(method string, stream grpc.ServerStream) error {
	answer := noise(16 << 20)
	return func(method string, stream grpc.ServerStream) error {
		switch method {
		case listContainers:
			answered.Add(1)
			return sendAll(stream, answer)
		case events:
			for i := range 10_000 {
				if err := sendAll(stream, fmt.Appendf(nil, "event %d", i)); err != nil {
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		return echo(method, stream)
	}
}

// Answers that nobody reads take a bounded part of the memory. Meanwhile small calls
// and events of the same caller, and large answers of others, pass; and a caller that
// reads those that it did not cancel after all gets every one.
func TestStalledReaders(t *testing.T) {
	for name, change := range map[string]func(*proxy.Options){"unhooked": func(*proxy.Options) {}, "hooked": hookAll} {
		t.Run(name, func(t *testing.T) {
			const calls, few = 200, 30
			backend := socketPath(t)
			var answered atomic.Int64
			startBackend(t, backend, large(&answered))
			opts := proxy.Options{Backend: dial(t, backend)}
			change(&opts)
			path, _ := startProxy(t, opts)

			stop := peak(t)
			streams, conn, cancelOthers := stuck(t, path, calls, few)
			settled(&answered)
			event := open(t, withTimeout(t, 5*time.Minute), conn, events)
			sendAll(event, nil)
			event.CloseSend()
			for i := range 20 {
				if got, err := invoke(withTimeout(t, time.Minute), conn, version, []byte("small")); err != nil || string(got) != "small" {
					t.Fatalf("a small call beside stalled ones: %q, %v", got, err)
				}
				var b []byte
				if err := event.RecvMsg(&b); err != nil || string(b) != fmt.Sprint("event ", i) {
					t.Fatalf("an event beside stalled calls: %q, %v", b, err)
				}
			}
			if got, err := invoke(withTimeout(t, time.Minute), connect(t, path), listContainers, nil); err != nil || len(got) != 16<<20 {
				t.Errorf("a large answer of another caller: %d bytes, %v", len(got), err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := invoke(ctx, conn, listContainers, nil); status.Code(err) != codes.DeadlineExceeded {
				t.Errorf("a call that waits for room ended with %v", err)
			}
			most := stop()
			t.Logf("the heap of caller, proxy and backend grew by %d MiB", most>>20)
			// The caller's own windows and the backend's queue are part of it.
			if most > 700<<20 {
				t.Errorf("%d answers that nobody reads made the heap grow by %d MiB", calls, most>>20)
			}
			var readers sync.WaitGroup
			cancelOthers()
			for i, stream := range streams[:few] {
				readers.Go(func() {
					if all, err := receiveAll(stream); err != nil || len(all) != 1 || len(all[0]) != 16<<20 {
						t.Errorf("answer %d is %d messages, %v", i, len(all), err)
					}
				})
			}
			readers.Wait()
		})
	}
}

// A caller that goes away while its answers wait gives back what they took.
func TestStalledReadersThatGoAway(t *testing.T) {
	backend := socketPath(t)
	var answered atomic.Int64
	startBackend(t, backend, large(&answered))
	path, _ := startProxy(t, proxy.Options{Backend: dial(t, backend)})
	for range 5 {
		_, conn, _ := stuck(t, path, 10, 10)
		settled(&answered)
		conn.Close()
	}
	for range 2 {
		if got, err := invoke(withTimeout(t, time.Minute), connect(t, path), listContainers, nil); err != nil || len(got) != 16<<20 {
			t.Errorf("the next caller gets %d bytes, %v", len(got), err)
		}
	}
}
