package simulate

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestPulledName: kubelet adds a tag to a name without one, and no registry.
func TestPulledName(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web:latest", "web:1": "web:1", "registry:5000/web": "registry:5000/web:latest", "registry:5000/web:1": "registry:5000/web:1",
		"web@sha256:1": "web@sha256:1", "web:1@sha256:1": "web:1@sha256:1",
	} {
		if got := pulledName(&runtimeapi.ImageSpec{Image: "sha256:0", UserSpecifiedImage: name}); got != want {
			t.Errorf("%s is pulled as %s, want %s", name, got, want)
		}
	}
	if got := pulledName(nil); got != "" {
		t.Errorf("no image is pulled as %s", got)
	}
}

// TestDigestIn: of an image that is named by a digest, that is what a runtime tells.
func TestDigestIn(t *testing.T) {
	for name, want := range map[string]string{
		"web:1": "", "a/web@sha256:1": "a/web@sha256:1", "registry:5000/web:1@sha256:1": "registry:5000/web@sha256:1", "registry:5000/web@sha256:1": "registry:5000/web@sha256:1",
	} {
		got := ""
		if all := digestIn(name); len(all) == 1 {
			got = all[0]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
