// Package metrics has what agent and controller tell Prometheus, and serves it. It is the only importer of Prometheus' client in the
// module, and counts nothing by itself. Labels are names of NodePlugins, their states and phases: no node, and no text of a user.
package metrics

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// registry has a program's own metrics, and those of its process.
func registry(own ...prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled()))
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	r.MustRegister(own...)
	return r
}

func handler(r *prometheus.Registry) http.Handler {
	o := promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4}
	return promhttp.HandlerFor(r, o)
}

// Serve serves /metrics, and /healthz with what healthy says, on an address until ctx is done. If the address is empty nothing is
// served. It returns when it serves; the error is that of the address.
func Serve(ctx context.Context, address string, metrics http.Handler, healthy func(*http.Request) error) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serving metrics, by --metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := healthy(r); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	s := &http.Server{
		Handler: mux, MaxHeaderBytes: 16 << 10,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
	}
	go s.Serve(l)
	context.AfterFunc(ctx, func() { s.Close() })
	return nil
}

// Healthy is for a program whose being there is all that there is to say.
func Healthy(*http.Request) error { return nil }

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
