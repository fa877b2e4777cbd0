package cri_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// TestShapes pins the surface of CRI v0.37: a newer cri-api that adds a method
// should be noticed by whoever takes it in.
func TestShapes(t *testing.T) {
	got := map[cri.Shape]int{}
	streams := map[string]bool{}
	for method, shape := range cri.Shapes() {
		got[shape]++
		if shape == cri.Stream {
			streams[method] = true
		}
	}
	if want := map[cri.Shape]int{cri.Unary: 36, cri.Stream: 7}; !cmp.Equal(got, want) {
		t.Errorf("methods by shape are %v, want %v", got, want)
	}
	want := map[string]bool{
		"/runtime.v1.RuntimeService/GetContainerEvents":      true,
		"/runtime.v1.RuntimeService/StreamPodSandboxes":      true,
		"/runtime.v1.RuntimeService/StreamContainers":        true,
		"/runtime.v1.RuntimeService/StreamContainerStats":    true,
		"/runtime.v1.RuntimeService/StreamPodSandboxStats":   true,
		"/runtime.v1.RuntimeService/StreamPodSandboxMetrics": true,
		"/runtime.v1.ImageService/StreamImages":              true,
	}
	if diff := cmp.Diff(want, streams); diff != "" {
		t.Errorf("streams differ (-want +got):\n%s", diff)
	}
}
