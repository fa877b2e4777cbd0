// Package tap relays calls between two sockets, and can hold a call of CRI at a moment that a test
// names. It counts the calls of each pod.
package tap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// maxMessage is larger than any message of CRI.
const maxMessage = 64 << 20

// Tap is a relay from one unix socket to another. A message passes as its bytes.
type Tap struct {
	listen, target string // endpoints
	names          *Names

	delay atomic.Int64 // of each request, in nanoseconds

	mu     sync.Mutex
	server *grpc.Server // nil after Cut
	conn   *grpc.ClientConn
	holds  map[moment]*Hold
	counts map[key]Count
}

// Phase is a moment of a call.
type Phase string

// The phases.
const (
	Request Phase = "request" // has come, and the target has not seen it
	Answer  Phase = "answer"  // has come from the target, and is a success; the caller has not seen it
)

// moment is where a call is held.
type moment struct {
	phase Phase
	key
}

// key is a method without its service, and the name of a pod.
type key struct{ method, pod string }

// Count is how often a pod was the object of a method.
type Count struct {
	Asked    int // requests that went on to the target
	Answered int // successes of the target
	Received int // successes that went on to the caller, as far as the relay knows
}

// New returns a relay from one endpoint to another, which is closed until Open.
func New(listen, target string, names *Names) *Tap {
	return &Tap{listen: listen, target: target, names: names, holds: map[moment]*Hold{}, counts: map[key]Count{}}
}

// Open accepts connections.
func (t *Tap) Open() error {
	socket := strings.TrimPrefix(t.listen, "unix://")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the relay's old socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listening for the relay: %w", err)
	}
	l.SetUnlinkOnClose(false) // a killed process leaves its socket, too
	conn, err := grpc.NewClient(t.target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond}}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return errors.Join(fmt.Errorf("making the relay's client: %w", err), l.Close())
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(t.relay), grpc.ForceServerCodecV2(raw{}), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	t.mu.Lock()
	t.server, t.conn = server, conn
	t.mu.Unlock()
	go server.Serve(l) // ends with Cut
	return nil
}

// Cut breaks all connections, as the death of the target does, and accepts none until Open.
func (t *Tap) Cut() {
	t.mu.Lock()
	server, conn := t.server, t.conn
	t.server = nil
	t.mu.Unlock()
	if server != nil {
		server.Stop()
		conn.Close()
	}
}

// Delay has each request wait from now on.
func (t *Tap) Delay(d time.Duration) { t.delay.Store(int64(d)) }

// Count returns the calls of a method for a pod so far.
func (t *Tap) Count(method, pod string) Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[key{method, pod}]
}

func (t *Tap) count(k key, add func(*Count)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts[k]
	add(&c)
	t.counts[k] = c
}

// relay passes one call on. Neither CRI nor the hook protocol has a call with more than one request.
func (t *Tap) relay(_ any, in grpc.ServerStream) error {
	service, _ := grpc.MethodFromServerStream(in)
	var request frame
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	k := key{path.Base(service), t.names.ofRequest(path.Base(service), request)}
	if err := t.hold(in.Context(), Request, k); err != nil {
		return err
	}
	time.Sleep(time.Duration(t.delay.Load()))
	md, _ := metadata.FromIncomingContext(in.Context())
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	out, err := conn.NewStream(metadata.NewOutgoingContext(in.Context(), md), &grpc.StreamDesc{ServerStreams: true}, service)
	if err != nil {
		return err
	}
	t.count(k, func(c *Count) { c.Asked++ })
	if err := out.SendMsg(request); err != nil && !errors.Is(err, io.EOF) { // of which the answer says more
		return err
	}
	if err := out.CloseSend(); err != nil {
		return err
	}
	return t.answer(in, out, k)
}

func (t *Tap) answer(in grpc.ServerStream, out grpc.ClientStream, k key) error {
	if header, err := out.Header(); err == nil {
		if err := in.SetHeader(header); err != nil {
			return err
		}
	}
	for first := true; ; first = false {
		var answer frame
		err := out.RecvMsg(&answer)
		if err != nil {
			in.SetTrailer(out.Trailer())
		}
		if errors.Is(err, io.EOF) {
			t.count(k, func(c *Count) { c.Received++ })
			return nil
		}
		if err != nil {
			return err
		}
		if first {
			t.names.learn(k, answer)
			t.count(k, func(c *Count) { c.Answered++ })
			if err := t.hold(in.Context(), Answer, k); err != nil {
				return err
			}
		}
		if err := in.SendMsg(answer); err != nil {
			return err
		}
	}
}

// Hold is a call that is to be held, or is.
type Hold struct {
	reached, released chan struct{}
	release           sync.Once
}

// Hold holds the next call of a method for a pod at a moment, until it is released or its caller
// goes away.
func (t *Tap) Hold(phase Phase, method, pod string) *Hold {
	h := &Hold{reached: make(chan struct{}), released: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holds[moment{phase, key{method, pod}}] = h
	return h
}

// Reached is closed when the call is held.
func (h *Hold) Reached() <-chan struct{} { return h.reached }

// Release lets the call go on. A second one does nothing.
func (h *Hold) Release() { h.release.Do(func() { close(h.released) }) }

func (t *Tap) hold(ctx context.Context, phase Phase, k key) error {
	t.mu.Lock()
	h := t.holds[moment{phase, k}]
	delete(t.holds, moment{phase, k})
	t.mu.Unlock()
	if h == nil {
		return nil
	}
	close(h.reached)
	select {
	case <-h.released:
		return nil
	case <-ctx.Done():
		return status.Error(codes.Canceled, "the caller of a held call went away")
	}
}
