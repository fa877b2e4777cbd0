package main

import (
	"log/slog"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

// process is what agent and controller have in common: an API server, a log, and an address for their metrics.
type process struct {
	kubeconfig, listen string

	config *rest.Config
	client *kube.Client
	log    *slog.Logger
}

func (p *process) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.kubeconfig, "kubeconfig", "", "how to reach the API server (default: as the pod's service account)")
	cmd.Flags().StringVar(&p.listen, "metrics-listen", "", "address for /metrics and /healthz, such as :9751, without TLS and authorization (default: not served)")
}

// start makes the client and the log, and serves metrics.
func (p *process) start(cmd *cobra.Command, handler http.Handler, healthy func(*http.Request) error) (err error) {
	if p.config, err = kube.Config(p.kubeconfig); err != nil {
		return err
	}
	if p.client, err = kube.New(p.config); err != nil {
		return err
	}
	p.log = logger()
	return metrics.Serve(cmd.Context(), p.listen, handler, healthy)
}

// logger logs to standard error, also what client-go has to say.
func logger() *slog.Logger {
	handler := slog.NewTextHandler(os.Stderr, nil)
	klog.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler)
}
