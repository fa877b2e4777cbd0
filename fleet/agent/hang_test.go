package agent

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

// silent is an API server that takes requests and never answers. Its fields are those of the last request.
type silent struct{ method, path string }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.method, s.path = r.Method, r.URL.Path
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestAPIServerHangs: a round of an agent ends whose API server does not answer, be it to what it reads of its node or to its report.
func TestAPIServerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(silent)
		client, err := kube.New(&rest.Config{Host: "http://api.invalid", Transport: server})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		a, err := New(client, Options{
			Node: "worker-1", PluginDir: dir, StatusSocket: filepath.Join(dir, "none"), ReportEvery: time.Nanosecond, Metrics: metrics.NewAgent(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.plugins.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		round := func(most time.Duration, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			err := a.reconcile(ctx, new(metrics.Round))
			if took := time.Since(began); took > most || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
				t.Errorf("a round took %v, more than %v, or its error is not of %s: %v", took, most, want, err)
			}
		}
		round(apiTime, "reading the node's labels")
		a.node = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "1"}} // which was read when the server answered
		round(2*apiTime, "reading what the node has reported")
		a.nodeAt = time.Now()
		round(apiTime, "reading what the node has reported")
		a.report.last = &v1alpha1.PluginNode{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", ResourceVersion: "1"}}
		round(apiTime, "reporting the node's plugins")
		if server.method != http.MethodPut || !strings.HasSuffix(server.path, "/pluginnodes/worker-1") {
			t.Errorf("the last request is %s %s", server.method, server.path)
		}
	})
}

// TestSameTrouble: as long as the same is wrong a round says the same, so that the log says it once.
func TestSameTrouble(t *testing.T) {
	client, err := kube.New(&rest.Config{Host: "http://api.invalid", Transport: new(silent)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a, err := New(client, Options{PluginDir: dir, StatusSocket: filepath.Join(dir, "none"), Metrics: metrics.NewAgent()})
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, id := range []string{"10-a", "20-b", "30-c"} {
		p := &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: id}}
		p.Status.Stable = &v1alpha1.Stable{Revision: v1alpha1.NoRevision}
		all = append(all, p)
	}
	damaged := filepath.Join(dir, ".delivery")
	if err := errors.Join(a.plugins.Replace(all, ""), os.WriteFile(damaged, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	a.node = new(metav1.PartialObjectMetadata) // without a name nothing is asked of the API server
	said := map[string]bool{}
	for range 30 {
		said[a.reconcile(t.Context(), new(metrics.Round)).Error()] = true
	}
	if len(said) != 1 {
		t.Errorf("30 rounds say %d different things, such as %v", len(said), said)
	}
}
