package suite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/manifests"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// testManifests applies each kustomization of deploy over the one before, first as a dry run. The
// API server refuses fields that it does not know, and a DaemonSet whose selector changes. No
// controller makes pods of it, so the test asks for one itself: it must have its priority.
func testManifests(t *testing.T, api *node.APIServer) {
	for _, name := range []string{"plugins", "node", "uninstall"} {
		objects, err := manifests.Build(filepath.Join(manifests.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if _, err := api.Apply(t.Context(), o, o.GetKind() != "Namespace"); err != nil { // whose objects need it
				t.Errorf("%s: the dry run of %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
			if _, err := api.Apply(t.Context(), o, false); err != nil {
				t.Fatalf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
			if o.GetKind() == "DaemonSet" {
				testPod(t, api, o)
			}
		}
	}
}

// testPod has the API server look at a pod of a DaemonSet, and at one with a mistake.
func testPod(t *testing.T, api *node.APIServer, daemonSet *unstructured.Unstructured) {
	t.Helper()
	template, _, err := unstructured.NestedMap(daemonSet.Object, "spec", "template")
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: template}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(daemonSet.GetNamespace())
	pod.SetName("of-daemonset")
	made, err := api.Apply(t.Context(), pod, true)
	if err != nil {
		t.Errorf("the dry run of a pod of %s: %v", daemonSet.GetName(), err)
	} else if priority, _, _ := unstructured.NestedInt64(made, "spec", "priority"); priority != 2000001000 { // system-node-critical
		t.Errorf("the pod's priority is %d", priority)
	}
	if err := unstructured.SetNestedField(pod.Object, true, "spec", "hostPid"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Apply(t.Context(), pod, true); err == nil || !strings.Contains(err.Error(), "hostPid: field not declared in schema") {
		t.Errorf("the dry run of a pod with a wrong field: %v", err)
	}
}
