// Package process is what the programs of agent and controller have in common: an API server, a log, an address for their metrics, and
// an end by signals. It knows nothing of plugins.
package process

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

// Version is set by the build: -ldflags "-X github.com/wasmproxy/wasmproxy/fleet/process.Version=v1.2.3".
var Version = "development"

// Run runs a program's command until it ends or the process gets SIGINT or SIGTERM, and exits with 1 if it fails.
func Run(cmd *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Version = Version // of --version
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.Name(), err)
		os.Exit(1)
	}
}

// Process is one that works for a cluster. Start fills it.
type Process struct {
	kubeconfig, listen string

	Config *rest.Config
	Client *kube.Client
	Log    *slog.Logger
}

// Flags adds those of the process.
func (p *Process) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.kubeconfig, "kubeconfig", "", "how to reach the API server (default: as the pod's service account)")
	cmd.Flags().StringVar(&p.listen, "metrics-listen", "", "address for /metrics and /healthz, such as :9751, without TLS and authorization (default: not served)")
}

// Start makes the client and the log, and serves metrics until the command's context is done.
func (p *Process) Start(cmd *cobra.Command, handler http.Handler, healthy func(*http.Request) error) (err error) {
	if p.Config, err = kube.Config(p.kubeconfig); err != nil {
		return err
	}
	if p.Client, err = kube.New(p.Config); err != nil {
		return err
	}
	p.Log = logger()
	p.Log.InfoContext(cmd.Context(), "starting", "version", Version)
	return metrics.Serve(cmd.Context(), p.listen, handler, healthy)
}

// logger logs to standard error, also what client-go has to say.
func logger() *slog.Logger {
	handler := slog.NewTextHandler(os.Stderr, nil)
	klog.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler)
}
