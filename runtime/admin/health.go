package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// healthTime is how long a check may take: probes of Kubernetes and load balancers wait some
// seconds.
const healthTime = 3 * time.Second

// addPublic adds a handler for each resource that others than the proxy's user may read. None names
// a pod or a container:
//
//	GET /healthz    200 if the proxy serves, else 503 and the reason
//	GET /readyz     200 if calls get what they are to get, else 503 and each reason in a line
//	GET /metrics    text that Prometheus reads
func (s *Sources) addPublic(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTime)
		defer cancel()
		var reasons []string
		if err := s.Healthy(ctx); err != nil {
			reasons = []string{err.Error()}
		}
		report(w, reasons)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTime)
		defer cancel()
		report(w, s.NotReady(ctx))
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.Metrics.ServeHTTP(w, r) })
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
