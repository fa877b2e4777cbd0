package suite_test

import (
	"fmt"
	"path"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// testResizeOfALiftedPod resizes a pod up and down whose container a plugin gives more than the pod has: kubelet says
// that each resize is done, the pod stays lifted and the container keeps what the plugin wants. When the plugin goes,
// both have what kubelet wanted last. Nothing is killed.
func testResizeOfALiftedPod(t *testing.T, proxy *node.Proxy, api *node.APIServer) {
	pod := staticPod("lifted", ticking("main", between("200m", "64Mi")))
	pod.Annotations = map[string]string{
		"set.wasmproxy.io/main.file.cpu.max": "60000", "set.wasmproxy.io/main.file.memory.max": "268435456",
	}
	group := runPod(t, api, pod)["main"]
	await := func(what, cpu, memory, podCPU string, podMemory func(string) bool) {
		t.Helper()
		node.Eventually(t, 3*time.Minute, what, func() error {
			var got [4]string
			for i, of := range []string{group, path.Dir(group)} {
				for k, file := range []string{"cpu.max", "memory.max"} {
					text, err := cgroupfs.Read(of, file)
					if err != nil {
						return err
					}
					got[2*i+k] = text
				}
			}
			if got[0] != cpu || got[1] != memory || got[2] != podCPU || !podMemory(got[3]) {
				return fmt.Errorf("the container has %s and %s, and the pod %s and %s", got[0], got[1], got[2], got[3])
			}
			return nil
		})
	}
	lifted := func(limit string) bool { return len(limit) > len("268435456") } // the node's memory
	await("the pod is lifted", "60000 100000", "268435456", "max 100000", lifted)
	for _, size := range []struct{ cpu, memory string }{{"300m", "96Mi"}, {"250m", "80Mi"}} {
		sizes := map[string]core.ResourceList{"main": quantities(size.cpu, size.memory)}
		patchLimits(t, api, pod, sizes)
		awaitResized(t, api, pod, sizes)
		await("the pod is lifted after the resize to "+size.cpu, "60000 100000", "268435456", "max 100000", lifted)
	}
	proxy.Remove(t, node.Setter)
	await("kubelet's limits come back", "25000 100000", "83886080", "25000 100000", func(limit string) bool { return limit == "83886080" })
	proxy.Add(t, node.Setter)
}
