package daemon_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A plugin has what its file says, from the next call after that says otherwise.
func TestLimitsOfAPlugin(t *testing.T) {
	n := serving(t, map[string]string{
		"10-loop.wasm": "loop", "10-loop.json": `{"failure-policy":"Fail","timeout":"30s","limits":{"fuel":1000000}}`,
		"20-hungry.wasm": "memory-hungry", "20-hungry.json": `{"limits":{"memory":"64Mi"}}`, // 62.5 MiB, the default is 32
	})
	n.awaitActive("10-loop", "20-hungry")
	n.refuses(t, "units of fuel, its limit is 1000000")
	n.put("10-loop.json", `{"failure-policy":"Fail","timeout":"30s","limits":{"fuel":2000000}}`)
	n.awaitLoad("10-loop")
	n.refuses(t, "units of fuel, its limit is 2000000")
	n.put("20-hungry.json", `{"limits":{"memory":"16Mi"}}`)
	n.await("plugin not loaded", "20-hungry", "it needs 1000 pages (62.5 MiB) of memory to start with, its limit is 256 (16 MiB)")
}

func (n *node) refuses(t *testing.T, why string) {
	t.Helper()
	if _, err := n.runPod(t.Context(), "web"); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want %q", err, why)
	}
}
