package controller

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// TestLacksBySelector: whether a node needs a plugin says the selector of the revision that it is to have. That of spec may be of an update
// that has not reached the node, or was rolled back.
func TestLacksBySelector(t *testing.T) {
	batch := `{"nodeSelector": {"matchLabels": {"pool": "batch"}}}`
	for _, test := range []struct {
		name, stable string
		spec         *metav1.LabelSelector
		pool, want   string
	}{
		{"a wider selector", batch, nil, "web", ""},
		{"the former selector", batch, nil, "batch", "50-p"},
		{"a narrower selector", `{}`, &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "batch"}}, "web", "50-p"},
	} {
		p := &v1alpha1.NodePlugin{ObjectMeta: metav1.ObjectMeta{Name: "50-p"}}
		p.Spec.NodeSelector, p.Spec.Settings = test.spec, &v1alpha1.Settings{FailurePolicy: "Fail"}
		p.Status = v1alpha1.NodePluginStatus{Stable: &v1alpha1.Stable{Revision: "50-p-1"}, RolledBack: "50-p-2"}
		stable := readRevision(&appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(test.stable)}})
		got, err := lacks("n", map[string]*v1alpha1.NodePlugin{"50-p": p}, map[string]revision{"50-p-1": stable},
			map[string]*v1alpha1.PluginNode{"n": {}}, map[string]node{"n": {labels: map[string]string{"pool": test.pool}}})
		if got != test.want || err != nil {
			t.Errorf("%s: a node of the pool %s lacks %q, error %v", test.name, test.pool, got, err)
		}
	}
}
