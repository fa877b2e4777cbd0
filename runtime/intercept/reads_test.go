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
	if _, errno := e.List(abi.Container, abi.ContainerArgs); errno != abi.TooLarge {
		t.Errorf("%d arguments: %v, want %v", len(args), errno, abi.TooLarge)
	}
}
