package suite_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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
			if _, err := apply(t, api, o, o.GetKind() != "Namespace"); err != nil { // whose objects need it
				t.Errorf("%s: the dry run of %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
			if _, err := apply(t, api, o, false); err != nil {
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
	made, err := apply(t, api, pod, true)
	if err != nil {
		t.Errorf("the dry run of a pod of %s: %v", daemonSet.GetName(), err)
	} else if priority, _, _ := unstructured.NestedInt64(made, "spec", "priority"); priority != 2000001000 { // system-node-critical
		t.Errorf("the pod's priority is %d", priority)
	}
	if err := unstructured.SetNestedField(pod.Object, true, "spec", "hostPid"); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(t, api, pod, true); err == nil || !strings.Contains(err.Error(), "hostPid: field not declared in schema") {
		t.Errorf("the dry run of a pod with a wrong field: %v", err)
	}
}

// apply is kubectl apply --server-side --validate=strict, and returns the object as the API server has it.
func apply(t *testing.T, api *node.APIServer, o *unstructured.Unstructured, dryRun bool) (map[string]any, error) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	group := "/apis/" + o.GetAPIVersion()
	if !strings.Contains(o.GetAPIVersion(), "/") {
		group = "/api/" + o.GetAPIVersion()
	}
	if o.GetNamespace() != "" {
		group += "/namespaces/" + o.GetNamespace()
	}
	request := api.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(group, strings.ToLower(o.GetKind())+"s", o.GetName()).
		Param("fieldManager", "e2e").Param("fieldValidation", "Strict").Body(body)
	if dryRun {
		request = request.Param("dryRun", "All")
	}
	answer, err := request.Do(t.Context()).Raw()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, answer)
	}
	made := new(unstructured.Unstructured)
	err = made.UnmarshalJSON(answer)
	return made.Object, err
}
