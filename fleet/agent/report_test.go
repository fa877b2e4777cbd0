package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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

// server is an API server that has a Node, and keeps a PluginNode; nil: there is none.
type server struct{ report *v1alpha1.PluginNode }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var answer any = s.report
	code := http.StatusOK
	switch {
	case !strings.Contains(r.URL.Path, "/pluginnodes"):
		answer = metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "1"},
		}
	case r.Method != http.MethodGet:
		s.report = new(v1alpha1.PluginNode)
		if err := json.NewDecoder(r.Body).Decode(s.report); err != nil {
			return nil, err
		}
		s.report.ResourceVersion = "2"
		answer = s.report
	case s.report == nil:
		code, answer = http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		}
	}
	text, err := json.Marshal(answer)
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

func newReporting(t *testing.T, s *server) *Agent {
	t.Helper()
	client, err := kube.New(&rest.Config{Host: "http://api.invalid", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a, err := New(client, Options{
		Node: "worker-1", PluginDir: dir, StatusSocket: filepath.Join(dir, "none"), ReportEvery: time.Nanosecond, Metrics: metrics.NewAgent(),
	})
	if err := errors.Join(err, a.plugins.Replace(nil, "")); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestReportIsRemoved: a PluginNode that somebody deletes is made again, also if there is no other news. Without it the node does not
// count, and a NodePlugin that is deleted does not wait for it.
func TestReportIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		a := newReporting(t, s)
		rounds := func(what string) {
			t.Helper()
			for range 2 {
				time.Sleep(nodeEvery)
				if err := a.reconcile(t.Context(), new(metrics.Round)); err != nil {
					t.Fatal(err)
				}
			}
			if s.report == nil {
				t.Fatalf("%s: the node has not reported", what)
			}
		}
		rounds("a new node")
		s.report = nil
		rounds("the PluginNode was deleted")
	})
}

// TestReportOfAnotherNode: what another node of the same name has reported is neither this one's, nor does it say that this one may have
// a plugin.
func TestReportOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy := v1alpha1.PluginReport{Name: "50-p", Revision: "r1", Phase: v1alpha1.Healthy}
		s := &server{&v1alpha1.PluginNode{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1", ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{{UID: "0"}}},
			Bypassed:   true, Plugins: []v1alpha1.PluginReport{healthy},
		}}
		a := newReporting(t, s)
		if err := a.readNode(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.report.pace = NewPace(time.Hour)
		for range 2 {
			has := map[string]v1alpha1.PluginReport{"50-p": {Name: "50-p", Revision: "r1"}} // its proxy does not answer
			if err := a.report.write(t.Context(), a.node, has, nil, errors.New("away"), time.Now()); err != nil {
				t.Fatal(err)
			}
			if s.report.ResourceVersion == "1" && a.report.names("50-p") {
				t.Error("the other node has said that this one may have the plugin")
			}
			time.Sleep(time.Hour)
		}
		if s.report.ResourceVersion == "1" || s.report.Bypassed || s.report.Plugins[0].Phase != "" {
			t.Errorf("the node reports %+v", s.report)
		}
	})
}
