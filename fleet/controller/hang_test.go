package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

// silent is an API server that takes requests and never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAPIServerHangs: a round of the controller ends whose API server does not answer, and each plugin has had its turn.
func TestAPIServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := kube.New(&rest.Config{Host: "http://api.invalid", Transport: silent{}})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		c := New(client, Options{Agents: labels.Everything(), Metrics: metrics.NewController(), Log: slog.New(slog.NewTextHandler(&log, nil))})
		plugins := []any{}
		for _, name := range []string{"50-p", "60-p"} {
			plugins = append(plugins, &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		err = errors.Join(c.plugins.Replace(plugins, ""), c.reports.Replace(nil, ""), c.nodes.Replace(nil, ""), c.revisions.Replace(nil, ""))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		c.reconcile(ctx, began)
		if took := time.Since(began); took > 2*apiTime {
			t.Errorf("a round with two plugins took %v", took)
		}
		if n := strings.Count(log.String(), context.DeadlineExceeded.Error()); n != 2 {
			t.Errorf("of two plugins the log has\n%s", &log)
		}
	})
}
