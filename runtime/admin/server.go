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
	// SetBypass turns the bypass on, for a reason that may be empty, or off. It returns when that
	// counts for every call.
	SetBypass func(ctx context.Context, on bool, reason string) (status.Bypass, error)
	// Record writes what a plugin asks in its calls to out, a line in each Write, until the recording ends or ctx is done.
	Record func(ctx context.Context, id string, o recording.Options, out io.Writer) error
	// Retry has the version of a plugin loaded once more that failed its probation.
	Retry func(ctx context.Context, plugin string) error
	// Shadow tells what came of the calls of a plugin's shadow.
	Shadow func(ctx context.Context, plugin string) (plugin.ShadowReport, error)
}

// Handler has a handler for each resource:
//
//	GET /explain?name=[NAMESPACE/]POD[/CONTAINER]    an explain.Report
//	GET /debug/pprof/                                Go's profiles of the process
//	GET /bypass                                      a status.Bypass
//	PUT /bypass                                      the same; the body is a BypassRequest
//	POST /plugins/{id}/recording                     lines of a recording; the body is a recording.Options
//	POST /plugins/{id}/retry                         nothing: the version that failed its probation is loaded once more
//	GET /plugins/{id}/shadow                         a plugin.ShadowReport
//
// and those of Status.
// An error is a problem with its text.
func Handler(s Sources) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /explain", s.explain)
	s.addPublic(mux)
	s.addStatus(mux)
	addProfiles(mux)
	mux.HandleFunc("GET /bypass", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.Bypass()) })
	mux.HandleFunc("PUT /bypass", s.setBypass)
	mux.HandleFunc("POST /plugins/{id}/recording", s.record)
	mux.HandleFunc("POST /plugins/{id}/retry", func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, r, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, s.Retry(ctx, r.PathValue("id"))
		})
	})
	mux.HandleFunc("GET /plugins/{id}/shadow", func(w http.ResponseWriter, r *http.Request) {
		answerWith(w, r, func(ctx context.Context) (plugin.ShadowReport, error) { return s.Shadow(ctx, r.PathValue("id")) })
	})
	return s.guard(mux)
}

// Serve answers requests until ctx is done, which also ends those under way. It closes the
// listener. The error says why it ended earlier.
func Serve(ctx context.Context, l net.Listener, s Sources) error { return serve(ctx, l, Handler(s)) }

// ServeStatus is Serve of the resources of Status alone.
func ServeStatus(ctx context.Context, l net.Listener, s Sources) error {
	return serve(ctx, l, Status(s))
}

// ServePublic is Serve of the resources of Public alone.
func ServePublic(ctx context.Context, l net.Listener, s Sources) error {
	return serve(ctx, l, Public(s))
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
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

func (s *Sources) explain(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime*2/3)
	defer cancel()
	report, err := s.Explain(ctx, r.URL.Query().Get("name"))
	switch {
	case err == nil:
		answer(w, http.StatusOK, report)
	case errors.Is(err, explain.ErrInvalid):
		answer(w, http.StatusBadRequest, problem{err.Error()})
	case errors.Is(err, explain.ErrNotFound):
		answer(w, http.StatusNotFound, problem{err.Error()})
	case errors.Is(err, explain.ErrAmbiguous):
		answer(w, http.StatusConflict, problem{err.Error()})
	case errors.As(err, new(NotReady)):
		answer(w, http.StatusServiceUnavailable, problem{err.Error()})
	default:
		answer(w, http.StatusInternalServerError, problem{err.Error()})
	}
}

// BypassRequest turns the bypass on or off.
type BypassRequest struct {
	On     bool   `json:"on"`
	Reason string `json:"reason,omitempty"` // for people; it counts only if On is true
}

func (s *Sources) setBypass(w http.ResponseWriter, r *http.Request) {
	var request BypassRequest
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxHeader))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		answer(w, http.StatusBadRequest, problem{"the body is no request for the bypass: " + err.Error()})
		return
	}
	answerWith(w, r, func(ctx context.Context) (status.Bypass, error) { return s.SetBypass(ctx, request.On, request.Reason) })
}

// answerWith answers with what ask returns, in a part of the time that the client waits.
func answerWith[T any](w http.ResponseWriter, r *http.Request, ask func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), answerTime/2)
	defer cancel()
	switch body, err := ask(ctx); {
	case err == nil:
		answer(w, http.StatusOK, body)
	case errors.As(err, new(NotReady)):
		answer(w, http.StatusServiceUnavailable, problem{err.Error()})
	default:
		answer(w, http.StatusInternalServerError, problem{err.Error()})
	}
}

// guard keeps a panic from the rest of the proxy, and makes an event of it.
func (s *Sources) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				s.Observer.Observe(r.Context(), &observe.Panicked{During: "a request to the admin socket", Panic: fmt.Sprint(p), Stack: string(debug.Stack())})
				answer(w, http.StatusInternalServerError, problem{"the proxy has a defect; its log has the line panic"})
			}
		}()
		next.ServeHTTP(w, r)
	})
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
