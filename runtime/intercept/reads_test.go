package intercept

import (
	"fmt"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
)

// TestMostEntriesOfADump: a map or list of more entries than an API server takes is not
// encoded, since that would take longer than a hook has.
func TestMostEntriesOfADump(t *testing.T) {
	annotations, args := map[string]string{}, make([]string, abi.MaxEntries+1)
	for i := range abi.MaxEntries {
		annotations[fmt.Sprint(i)] = ""
	}
	pod := crifield.NewPod("pod", "", &runtimeapi.PodSandboxConfig{Annotations: annotations})
	e := &event{pod: pod, container: &crifield.Container{Config: &runtimeapi.ContainerConfig{Args: args}, Annotations: annotations}}
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		field := abi.PodAnnotations
		if o == abi.Container {
			field = abi.ContainerAnnotations
		}
		annotations["one more"] = ""
		if _, errno := e.Entries(o, field); errno != abi.TooLarge {
			t.Errorf("%d annotations of a %v: %v, want %v", len(annotations), o, errno, abi.TooLarge)
		}
		delete(annotations, "one more")
		if _, errno := e.Entries(o, field); errno != abi.OK {
			t.Errorf("%d annotations of a %v: %v", len(annotations), o, errno)
		}
	}
	if _, errno := e.List(t.Context(), abi.Container, abi.ContainerArgs); errno != abi.TooLarge {
		t.Errorf("%d arguments: %v, want %v", len(args), errno, abi.TooLarge)
	}
}

// TestMostEntriesOfARequest: one whose maps and lists have more entries together is not encoded for cri_raw either, which
// would copy and sort them.
func TestMostEntriesOfARequest(t *testing.T) {
	config := &runtimeapi.ContainerConfig{Args: make([]string, 10), Annotations: map[string]string{}}
	for range 20 {
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: "A"})
	}
	pod := &runtimeapi.PodSandboxConfig{Labels: map[string]string{"app": "web"}}
	for i := range abi.MaxEntries - 31 {
		config.Annotations[fmt.Sprint(i)] = ""
	}
	e := &event{}
	e.req = &runtimeapi.CreateContainerRequest{Config: config, SandboxConfig: pod}
	if raw, errno := e.Raw(0); errno != abi.OK || len(raw) == 0 {
		t.Errorf("with the most entries: %d bytes, %v", len(raw), errno)
	}
	pod.Labels["tier"] = "front"
	if _, errno := e.Raw(0); errno != abi.TooLarge {
		t.Errorf("with one more: %v, want %v", errno, abi.TooLarge)
	}
}
