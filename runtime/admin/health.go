package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// healthTime is how long a check may take: probes of Kubernetes and load balancers wait some
// seconds.
const healthTime = 3 * time.Second

// Public has a handler for each resource that others than the proxy's user may read. None names
// a pod or a container:
//
//	GET /healthz    200 if the proxy serves, else 503 and the reason
//	GET /readyz     200 if calls get what they are to get, else 503 and each reason in a line
//	GET /metrics    text that Prometheus reads
func Public(s Sources) http.Handler {
	mux := http.NewServeMux()
	s.addPublic(mux)
	return s.guard(mux)
}

// Status has a handler for each resource that tells the state of the proxy and changes nothing:
//
//	GET /status      a status.Status
//	GET /plugins     a status.Plugins
//
// and those of Public. Errors of plugins may name pods and containers.
func Status(s Sources) http.Handler {
	mux := http.NewServeMux()
	s.addPublic(mux)
	s.addStatus(mux)
	return s.guard(mux)
}

func (s *Sources) addStatus(mux *http.ServeMux) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, s.Status) })
	mux.HandleFunc("GET /plugins", func(w http.ResponseWriter, r *http.Request) { answerWith(w, r, s.Plugins) })
}

func (s *Sources) addPublic(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.Metrics.ServeHTTP(w, r) })
}

// addProfiles adds Go's profiles of the process. They have function names and no data, and cost
// processor time: they are for the admin socket alone.
func addProfiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}

func (s *Sources) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTime)
	defer cancel()
	if err := s.Healthy(ctx); err != nil {
		report(w, []string{err.Error()})
		return
	}
	report(w, nil)
}

func (s *Sources) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthTime)
	defer cancel()
	report(w, s.NotReady(ctx))
}

// report answers with the reasons, or with ok if there are none.
func report(w http.ResponseWriter, reasons []string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if len(reasons) == 0 {
		reasons = []string{"ok"}
	} else {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintln(w, strings.Join(reasons, "\n"))
}
