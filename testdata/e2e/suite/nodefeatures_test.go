package suite_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	core "k8s.io/api/core/v1"
	nodeapi "k8s.io/api/node/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// expectNodeLabels: the file for Node Feature Discovery has the runtime's two handlers as far as it
// tells them, and the active plugin.
func expectNodeLabels(t *testing.T, proxy *node.Proxy) {
	t.Helper()
	kind, labels := node.RuntimeKind(), proxy.NodeLabels(t, "plugin.50-overhead")
	want := map[string]string{"runtime.name": kind.Name, "cgroup.version": fmt.Sprintf("v%d", cgroupfs.Version())}
	if !kind.NoRuntimeConfig {
		want["cgroup.driver"], want["handler.runc"], want["handler.sandboxed"] = node.CgroupDriver(), "true", "true"
	}
	for name, value := range want {
		if labels[name] != value {
			t.Errorf("the node's label %s is %q, want %q", name, labels[name], value)
		}
	}
	if len(labels) < len(want)+2 { // the plugin and the runtime's version
		t.Errorf("the node has the labels %v", labels)
	}
	t.Logf("the node has the labels %v", labels)
}

var manifestBlock = regexp.MustCompile("(?s)```yaml manifest\n(.*?)```")

// testDocumentedRuntimeClass: the API server accepts the class of the document without an unknown
// field, and adds all that it says to the pod of the document.
func testDocumentedRuntimeClass(t *testing.T, api *node.APIServer) {
	t.Helper()
	page, err := os.ReadFile(isolation.Current().Program(node.OperationsPage))
	if err != nil {
		t.Fatal(err)
	}
	blocks := manifestBlock.FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("the document has %d manifests, want the class and the pod", len(blocks))
	}
	var class nodeapi.RuntimeClass
	var pod core.Pod
	post := func(path string, manifest []byte, dryRun []string, into interface{ GetName() string }) {
		t.Helper()
		body, err := yaml.YAMLToJSON(manifest)
		if err != nil {
			t.Fatal(err)
		}
		request := api.Discovery().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Param("fieldValidation", "Strict")
		for _, value := range dryRun {
			request.Param("dryRun", value)
		}
		answer, err := request.Body(body).DoRaw(t.Context())
		if err != nil {
			t.Fatalf("the API server refuses the document's manifest: %v: %s\n%s", err, answer, manifest)
		}
		if err := yaml.Unmarshal(answer, into); err != nil {
			t.Fatal(err)
		}
	}
	post("/apis/node.k8s.io/v1/runtimeclasses", blocks[0][1], nil, &class)
	post("/api/v1/namespaces/default/pods", blocks[1][1], []string{meta.DryRunAll}, &pod)
	expectQuantity(t, pod.Spec.Overhead, core.ResourceMemory, class.Overhead.PodFixed.Memory().String())
	for label, value := range class.Scheduling.NodeSelector {
		if pod.Spec.NodeSelector[label] != value {
			t.Errorf("the pod's nodeSelector is %v, want that of the class, %v", pod.Spec.NodeSelector, class.Scheduling.NodeSelector)
		}
	}
	found := false
	for _, toleration := range pod.Spec.Tolerations {
		found = found || toleration.Key == class.Scheduling.Tolerations[0].Key
	}
	if !found || len(class.Scheduling.NodeSelector) != 1 {
		t.Errorf("the pod tolerates %v, want what the class does, %v", pod.Spec.Tolerations, class.Scheduling.Tolerations)
	}
	if err := api.NodeV1().RuntimeClasses().Delete(t.Context(), class.Name, meta.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
