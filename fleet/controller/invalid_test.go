package controller

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/metrics"
)

// saved is an API server that takes all, and the NodePlugin of the last status.
type saved struct{ v1alpha1.NodePlugin }

func (s *saved) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/status") {
		if err := json.NewDecoder(r.Body).Decode(&s.NodePlugin); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

// TestInvalidSelector: a selector that the API server lets in and that is none is in the status, and nodes keep what they have.
func TestInvalidSelector(t *testing.T) {
	server := new(saved)
	client, err := kube.New(&rest.Config{Host: "http://api.invalid", Transport: server})
	if err != nil {
		t.Fatal(err)
	}
	c := New(client, Options{
		Namespace: "wasmproxy", Agents: labels.Everything(), Metrics: metrics.NewController(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	p := &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: "50-p", Generation: 2, Finalizers: []string{Finalizer}}}
	wrong := metav1.LabelSelectorRequirement{Key: "pool", Operator: "in", Values: []string{"batch"}}
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{wrong}}
	node := &v1alpha1.PluginNode{ObjectMeta: metav1.ObjectMeta{Name: "n", OwnerReferences: []metav1.OwnerReference{{}}}}
	err = errors.Join(c.plugins.Replace([]any{p}, ""), c.reports.Replace([]any{node}, ""))
	if err := errors.Join(err, c.nodes.Replace(nil, ""), c.revisions.Replace(nil, "")); err != nil {
		t.Fatal(err)
	}
	c.reconcile(t.Context(), time.Now())
	stalled := meta.FindStatusCondition(server.Status.Conditions, v1alpha1.Stalled)
	if stalled == nil || stalled.Reason != "InvalidSelector" || !strings.Contains(stalled.Message, `"in" is not a valid`) {
		t.Errorf("the status is %+v", server.Status)
	}
	if server.Status.Stable != nil || server.Status.ObservedGeneration != 2 {
		t.Errorf("the status of a plugin with an invalid selector is %+v", server.Status)
	}
}
