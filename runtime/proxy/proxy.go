package proxy

import (
	"context"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// endless is the one method of CRI whose stream has no end of its own. It is
// not waited for at shutdown.
const endless = "/runtime.v1.RuntimeService/GetContainerEvents"

// What these numbers gave, and what other options did not, is in RATIONALE.md.
const (
	// maxMessage is in bytes. Kubelet and containerd accept 16 MiB; the end
	// points are to enforce their limits, so this one only keeps a broken peer
	// from filling the node's memory.
	maxMessage = 256 << 20

	// window is how many bytes of one call may be under way on one connection
	// before its reader has taken them. A fixed one saves a ping per message.
	window = 1 << 20

	// streamWorkers is how many goroutines wait for calls with a stack that has
	// grown already. More calls than that get a goroutine each.
	streamWorkers = 4

	// connectTime is how long a caller that has connected may take to say that it speaks HTTP/2. One
	// that says nothing delays a shutdown by as much, so it is a part of the drain timeout.
	connectTime = time.Second
)

// Options say where calls go. Connections stay the caller's to close.
type Options struct {
	Backend      grpc.ClientConnInterface // all services, by [Dial]
	ImageBackend grpc.ClientConnInterface // every ImageService instead; nil: Backend
	Router       cri.Router               // nil: every call passes
	Observer     observe.Observer         // nil: nobody
	DrainTimeout time.Duration            // how long calls may take to finish at shutdown
}

// A Server is the kubelet's side of the proxy.
type Server struct {
	opts     Options
	shapes   map[string]cri.Shape
	callers  *callers
	grpc     *grpc.Server
	stopping chan struct{} // closed when shutdown has begun
}

// New returns a Server that is yet to Serve.
func New(opts Options) *Server {
	if opts.ImageBackend == nil {
		opts.ImageBackend = opts.Backend
	}
	if opts.Router == nil {
		opts.Router = func(string) cri.Interceptor { return nil }
	}
	if opts.Observer == nil {
		opts.Observer = observe.Discard()
	}
	s := &Server{opts: opts, shapes: cri.Shapes(), stopping: make(chan struct{})}
	s.callers = &callers{
		TransportCredentials: insecure.NewCredentials(),
		answers:              semaphore.NewWeighted(answersTotal),
	}
	s.grpc = grpc.NewServer(
		grpc.UnknownServiceHandler(s.handle),
		grpc.ForceServerCodecV2(cri.Codec{}),
		grpc.Creds(s.callers),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(window),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ConnectionTimeout(connectTime),
		grpc.WaitForHandlers(true), // also of calls that are cut: who serves them closes what they use
		// Whether a caller may ping often is not for a proxy to decide.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	return s
}

// Serve answers calls on l until ctx is done or l fails. It then closes l, ends event streams with
// Unavailable, gives other calls their time to finish before it cuts them, and returns when no call
// runs any more. The error is that of a listener that failed, nil otherwise. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	err := s.grpc.Serve(&countedListener{l, s.callers})
	if !stop() {
		err = nil // it was closed
	}
	s.callers.arriving.Wait() // gRPC closes a connection that it has not begun to serve when it is told to stop
	close(s.stopping)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.grpc.GracefulStop()
	}()
	select {
	case <-drained:
	case <-time.After(s.opts.DrainTimeout):
		s.opts.Observer.Observe(context.Background(), &observe.ShutdownLate{Of: "calls", After: s.opts.DrainTimeout})
		s.grpc.Stop()
	}
	return err
}

// countedListener is a listener whose connections are counted until they are served.
type countedListener struct {
	net.Listener
	of *callers
}

func (l *countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.of.arriving.Add(1)
	}
	return conn, err
}

// handle carries one call of any method.
func (s *Server) handle(_ any, down grpc.ServerStream) (err error) {
	method, _ := grpc.MethodFromServerStream(down) // ok for any server stream
	start, backend := time.Now(), time.Duration(0)
	var h *hookedCall
	defer func() {
		if r := recover(); r != nil {
			err = s.panicked(method, r)
		}
		if !s.opts.Observer.Wants(observe.KindCallFinished) {
			return
		}
		done := &observe.CallFinished{
			Method: method, Code: status.Code(err).String(), Route: observe.Passed, Start: start, Duration: time.Since(start), Backend: backend,
		}
		if h != nil {
			done.Backend, done.Plugins = h.backend, h.Plugins
			switch {
			case h.Hooked:
				done.Route = observe.Hooked
			case h.Followed:
				done.Route = observe.Followed
			}
		}
		s.opts.Observer.Observe(down.Context(), done)
	}()

	// OpenTelemetry's exporter registers gzip for the whole process: gRPC would make up to maxMessage bytes
	// of a few of the caller's.
	incoming, ok := grpc.ServerTransportStreamFromContext(down.Context()).(interface{ RecvCompress() string })
	if ok && incoming.RecvCompress() != "" && incoming.RecvCompress() != encoding.Identity {
		return errCompressed
	}
	up := s.opts.Backend
	if i := strings.LastIndexByte(method, '/'); i > 0 && strings.HasSuffix(method[:i], ".ImageService") {
		up = s.opts.ImageBackend
	}
	if intercept := s.opts.Router(method); intercept != nil {
		h = new(hookedCall)
		return h.serve(method, down, up, intercept)
	}
	if s.shapes[method] == cri.Unary {
		backend, err = unary(method, down, up)
		return err
	}
	err = s.stream(method, down, up)
	backend = time.Since(start)
	return err
}
