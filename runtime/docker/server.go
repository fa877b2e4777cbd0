package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Options are the parts of a Server. All are required but DrainTimeout.
type Options struct {
	Client       *Client
	Router       cri.Router
	Store        *pods.Store // which the routes keep
	Observer     observe.Observer
	DrainTimeout time.Duration // how long requests may take to finish at shutdown
}

// A Server is the side of the proxy that dockershim and other clients of Docker see.
type Server struct {
	opts     Options
	reverse  *httputil.ReverseProxy // of answers that pass as they come
	hooked   *httputil.ReverseProxy // of those to requests that plugins hook
	http     *http.Server
	requests sync.WaitGroup
	stopping context.Context    // done when shutdown has begun
	stop     context.CancelFunc // begins it
	cut      context.Context    // done when no request may take longer
	cutAll   context.CancelFunc
}

// New returns a Server that is yet to Serve.
func New(opts Options) *Server {
	s := &Server{opts: opts}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.cut, s.cutAll = context.WithCancel(context.Background())
	discard := log.New(io.Discard, "", 0) // what happens is an event
	s.reverse = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: opts.Client.transport, FlushInterval: -1, ErrorHandler: s.unreachable, ErrorLog: discard,
	}
	s.hooked = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: opts.Client.transport, ModifyResponse: readWhole, ErrorHandler: s.unreachable, ErrorLog: discard,
	}
	withConn := func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	s.http = &http.Server{Handler: s, ErrorLog: discard, ConnContext: withConn}
	return s
}

// rewrite sends a request on as it came: without a header that tells of the proxy, and with those
// that ReverseProxy takes for another proxy's.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.RawQuery = "http", "docker", r.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

// Serve answers requests on l until ctx is done or l fails. It then closes l, ends requests that
// have no end of their own, such as those for events, gives others DrainTimeout to finish before
// it cuts them, and returns when no request runs any more. The error is that of a listener that
// failed, nil otherwise. A Server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.shutdown()
	})
	err := s.http.Serve(l)
	if cancel() { // the listener failed
		s.shutdown()
		return err
	}
	<-stopped
	return nil
}

func (s *Server) shutdown() {
	s.stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_ = s.http.Shutdown(s.cut) // which does not wait for connections that were taken over
		s.requests.Wait()
	}()
	select {
	case <-drained:
	case <-time.After(s.opts.DrainTimeout):
		s.opts.Observer.Observe(context.Background(), &observe.ShutdownLate{Of: "calls", After: s.opts.DrainTimeout})
		s.cutAll()
		_ = s.http.Close()
		<-drained
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	defer s.requests.Done()
	op, object, version := operationOf(r)
	trace := metadata.MD{}
	for _, key := range traceHeaders {
		trace.Append(key, r.Header.Values(key)...)
	}
	ctx := metadata.NewIncomingContext(r.Context(), trace) // which has it where a call of CRI has it
	if op.attaches {
		ctx = context.WithoutCancel(ctx) // which ends with the caller's input
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if op.attaches {
		go endWith(ctx, end)
	}
	defer context.AfterFunc(s.cut, end)()
	if op.endless {
		defer context.AfterFunc(s.stopping, end)()
	}
	// dockerd reads the context of a build while it answers.
	_ = http.NewResponseController(w).EnableFullDuplex()
	c := &call{Server: s, op: op, object: object, r: r.WithContext(ctx), start: time.Now()}
	// In an old version Docker may read what plugins do not see, such as a HostConfig in the body of a start.
	if version != "" && slices.Compare(numbersOf(version), numbersOf(op.since)) < 0 {
		c.unseen = fmt.Errorf("it is of version %s of Docker's API, and plugins are shown version %s and newer; use a newer client", version, op.since)
	}
	c.w = &writer{ResponseWriter: w}
	c.w.Header()["Content-Type"], c.w.Header()["Date"] = nil, nil // not to be made up where Docker sends none
	defer c.finish(ctx)

	routed := func(m *cri.Method) bool { return s.opts.Router(m.Name) != nil }
	switch {
	case op.attaches:
		c.attach()
	case op.serve == nil, op.when != nil && !op.when(r.URL.Query()), !slices.ContainsFunc(op.methods(), routed):
		c.pass()
	default:
		op.serve(c)
	}
}

// unreachable answers a request that Docker has not.
func (s *Server) unreachable(w http.ResponseWriter, r *http.Request, err error) {
	err = s.opts.Client.unreachable(r.Context(), err)
	if rec, ok := w.(*recorder); ok {
		rec.err = err
		return
	}
	refuseError(w, err)
}

// call is one request on its way. It belongs to the goroutine that serves it.
type call struct {
	*Server
	op      operation
	object  string // that the path names
	w       *writer
	r       *http.Request
	body    []byte // of a request whose hooks want it
	unseen  error  // why plugins cannot judge the request; nil if they can
	start   time.Time
	backend time.Duration // that Docker had the request
	report  cri.Call      // of the outermost route
}

// finish makes the event of the call, also after a panic, which ends the call alone.
func (c *call) finish(ctx context.Context) {
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) { // the answer broke off
			defer panic(http.ErrAbortHandler)
		} else {
			c.opts.Observer.Observe(ctx, &observe.Panicked{During: "a call", Method: c.op.name, Panic: fmt.Sprint(p), Stack: string(debug.Stack())})
			refuse(c.w, http.StatusInternalServerError, observe.PanickedAnswer)
		}
	}
	if !c.opts.Observer.Wants(observe.KindCallFinished) {
		return
	}
	took := time.Since(c.start)
	done := &observe.CallFinished{
		Method: c.op.name, Code: codeOf(c.w.code).String(), Route: observe.Passed,
		Start: c.start, Duration: took, Backend: c.backend, Plugins: c.report.Plugins,
	}
	switch {
	case c.report.Hooked:
		done.Route = observe.Hooked
	case c.report.Followed:
		done.Route = observe.Followed
	}
	c.opts.Observer.Observe(context.WithoutCancel(ctx), done)
}

// pass sends the request on, and the answer back as it comes.
func (c *call) pass() {
	c.ask(c.reverse, c.w, c.r)
}

// The headers of W3C Trace Context.
var traceHeaders = []string{"traceparent", "tracestate"}

// ask sends the request on by one of the server's proxies, below the span that was made of it if there is one, and counts Docker's time.
func (c *call) ask(by *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	if md, _ := metadata.FromOutgoingContext(r.Context()); len(md.Get(traceHeaders[0])) > 0 {
		r.Header = r.Header.Clone()
		for _, key := range traceHeaders {
			r.Header[http.CanonicalHeaderKey(key)] = md.Get(key)
		}
	}
	start := time.Now()
	defer func() { c.backend = time.Since(start) }()
	by.ServeHTTP(w, r)
}
