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
	mux.HandleFunc("GET /healthz", probe(func(ctx context.Context) []string {
		if err := s.Healthy(ctx); err != nil {
			return []string{err.Error()}
		}
		return nil
	}))
	mux.HandleFunc("GET /readyz", probe(s.NotReady))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.Metrics.ServeHTTP(w, r) })
}

// probe answers with the reasons that a check returns, or with ok if there are none.
func probe(check func(context.Context) (reasons []string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTime)
		defer cancel()
		reasons := check(ctx)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if len(reasons) == 0 {
			reasons = []string{"ok"}
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintln(w, strings.Join(reasons, "\n"))
	}
}
