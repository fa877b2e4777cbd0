package manifests_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
)

// TestFleet: of the fleet's objects those of a namespace are in that of the kustomization, and the others in none.
func TestFleet(t *testing.T) {
	objects, err := manifests.Build(filepath.Join(manifests.Dir(), "fleet"))
	if err != nil {
		t.Fatal(err)
	}
	namespaced := []string{"ServiceAccount", "Role", "RoleBinding", "DaemonSet", "Deployment"}
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
		want := ""
		if slices.Contains(namespaced, o.GetKind()) {
			want = "wasmproxy"
		}
		if o.GetNamespace() != want {
			t.Errorf("%s %s is in the namespace %q, not %q", o.GetKind(), o.GetName(), o.GetNamespace(), want)
		}
	}
	for kind, n := range map[string]int{
		"CustomResourceDefinition": 2, "ServiceAccount": 2, "ClusterRole": 2, "ClusterRoleBinding": 2, "Role": 2, "RoleBinding": 2,
		"ValidatingAdmissionPolicy": 2, "ValidatingAdmissionPolicyBinding": 2, "DaemonSet": 1, "Deployment": 1, "Namespace": 1, "PriorityLevelConfiguration": 1, "FlowSchema": 1,
	} {
		if kinds[kind] != n {
			t.Errorf("there are %d objects of the kind %s, not %d", kinds[kind], kind, n)
		}
	}
}
