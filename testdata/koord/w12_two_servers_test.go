package koord_test

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW12TwoServers registers two servers for one hook. Both count, in the order
// of their files; koord-runtime-proxy asks one of them, whichever comes first.
func TestW12TwoServers(t *testing.T) {
	scenario{incumbent: "annotations: got", run: func(n *node) error {
		second := n.serve("20-b.json", answering(&containerResponse{ContainerAnnotations: map[string]string{"b": "2"}}), "Fail", "PreCreateContainer")
		n.serve("10-a.json", answering(&containerResponse{ContainerAnnotations: map[string]string{"a": "1"}}), "Fail", "PreCreateContainer")
		n.start()
		pod, err := n.runPod(podConfig())
		n.must(err)
		if _, err := n.create(pod, containerConfig(), podConfig()); err != nil {
			return n.well(err)
		}
		const kept = "io.kubernetes.container.restartCount"
		return join(
			want("annotations", lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig().GetAnnotations(), map[string]string{kept: "1", "a": "1", "b": "2"}),
			want("what the second server saw", lastTold[*containerRequest](second, "PreCreateContainer").GetContainerAnnotations(), map[string]string{kept: "1", "a": "1"}),
		)
	}}.test(t)
}
