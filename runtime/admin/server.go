package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/explain"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// How long a request may take. Explain asks the container runtime at worst where a pod's
// containers are.
const (
	headerTime = 5 * time.Second
	answerTime = 30 * time.Second
)

// maxHeader is of a request's header, and of its body, in bytes.
const maxHeader = 16 << 10

// stopTime is how long requests under way may take to notice that the server ends. It is a part of
// the 5 s for which kubelet's connection waits in a restart.
const stopTime = time.Second

// NotReady is the error of a question that cannot be answered at the moment, with the reason.
type NotReady string

func (e NotReady) Error() string { return string(e) }

// Sources are what answers come from.
type Sources struct {
	Observer observe.Observer
	// Explain tells which values a pod or container has, named in the form explain.Form. Its
	// error is an *explain.Error or a NotReady.
	Explain func(ctx context.Context, name string) (*explain.Report, error)
	// Metrics answers in a form that Prometheus reads.
	Metrics http.Handler
	// Healthy succeeds if the proxy serves.
	Healthy func(context.Context) error
	// NotReady returns why calls do not get what they are to get; nothing if they do.
	NotReady func(context.Context) (reasons []string)
	// Status tells the state of the proxy, and Plugins that of its plugins.
	Status  func(context.Context) (*status.Status, error)
	Plugins func(context.Context) (status.Plugins, error)
	// Bypass tells whether plugins are bypassed.
	Bypass func() status.Bypass
	// Record writes what a plugin asks in its calls to out, a line in each Write, until the recording ends or ctx is done.
	Record func(ctx context.Context, id string, o recording.Options, out io.Writer) error
	// Retry has the version of a plugin loaded once more that failed its probation.
	Retry func(ctx context.Context, plugin string) error
	// Shadow tells what came of the calls of a plugin's shadow.
	Shadow func(ctx context.Context, plugin string) (plugin.ShadowReport, error)
}

// Serve answers requests for all resources until ctx is done, which also ends those under way. It closes the
// listener. The error says why it ended earlier. An error in an answer is a problem with its text.
func Serve(ctx context.Context, l net.Listener, s Sources) error {
	return serve(ctx, l, &s, s.addPublic, s.addStatus, s.addOwn)
}

// ServeStatus is Serve of what tells the state of the proxy and changes nothing. Errors of plugins may name pods and
// containers.
func ServeStatus(ctx context.Context, l net.Listener, s Sources) error {
	return serve(ctx, l, &s, s.addPublic, s.addStatus)
}

// ServePublic is Serve of what names no pod and no container.
func ServePublic(ctx context.Context, l net.Listener, s Sources) error {
	return serve(ctx, l, &s, s.addPublic)
}

// addStatus adds
//
//	GET /status      a status.Status
//	GET /plugins     a status.Plugins
func (s *Sources) addStatus(mux *http.ServeMux) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, s.Status) })
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, s.Plugins) })
}

// addOwn adds what is for the proxy's own user:
//
//	GET /explain?name=[NAMESPACE/]POD[/CONTAINER]    an explain.Report
//	GET /debug/pprof/                                Go's profiles of the process: names of functions, and no data
//	GET /bypass                                      a status.Bypass
//	POST /plugins/{id}/recording                     lines of a recording; the body is a recording.Options
//	POST /plugins/{id}/retry                         nothing: the version that failed its probation is loaded once more
//	GET /plugins/{id}/shadow                         a plugin.ShadowReport
func (s *Sources) addOwn(mux *http.ServeMux) {
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, r, func(ctx context.Context) (*explain.Report, error) { return s.Explain(ctx, r.URL.Query().Get("name")) })
	})
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /bypass", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.Bypass()) })
	mux.HandleFunc("POST /plugins/{id}/recording", s.record)
	mux.HandleFunc("POST /plugins/{id}/retry", func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, r, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Retry(ctx, r.PathValue("id")) })
	})
	mux.HandleFunc("GET /plugins/{id}/shadow", func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, r, func(ctx context.Context) (plugin.ShadowReport, error) { return s.Shadow(ctx, r.PathValue("id")) })
	})
}

func serve(ctx context.Context, l net.Listener, s *Sources, resources ...func(*http.ServeMux)) error {
	mux := http.NewServeMux()
	for _, add := range resources {
		add(mux)
	}
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { // a panic is kept from the rest of the proxy
			if p := recover(); p != nil {
				during := "a request to " + l.Addr().String()
				s.Observer.Observe(r.Context(), &observe.Panicked{During: during, Panic: fmt.Sprint(p), Stack: string(debug.Stack())})
				answer(w, http.StatusInternalServerError, problem{"the proxy has a defect; its log has the line panic"})
			}
		}()
		mux.ServeHTTP(w, r)
	})
	server := &http.Server{
		Handler:           guarded,
		ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: headerTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       log.New(io.Discard, "", 0), // it says what clients do wrong
		BaseContext:    func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(l)
	if stop() { // the listener was closed
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		return errors.Join(err, server.Shutdown(ctx)) // requests under way end
	}
	<-stopped
	return nil
}

// kinds are the errors of explain that have a status of their own.
var kinds = map[int]error{
	http.StatusBadRequest: explain.ErrInvalid,
	http.StatusNotFound:   explain.ErrNotFound,
	http.StatusConflict:   explain.ErrAmbiguous,
}

// answerWith answers with what ask returns, in a part of the time that the client waits.
func answerWith[T any](w http.ResponseWriter, r *http.Request, ask func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime*2/3)
	defer cancel()
	body, err := ask(ctx)
	if err == nil {
		answer(w, http.StatusOK, body)
		return
	}
	is := http.StatusInternalServerError
	if errors.As(err, new(NotReady)) {
		is = http.StatusServiceUnavailable
	}
	for status, kind := range kinds {
		if errors.Is(err, kind) {
			is = status
		}
	}
	answer(w, is, problem{err.Error()})
}

// problem is the body of an answer that is an error.
type problem struct {
	Error string `json:"error"`
}

// answer writes a body as JSON. A client that went away gets nothing.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text, _ := json.Marshal(body) // types of this program: it cannot fail
	_, _ = w.Write(append(plugin.PrintableJSON(text), '\n'))
}
