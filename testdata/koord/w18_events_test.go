package koord_test

import (
	"context"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW18Events reads the runtime's events, which kubelet's evented PLEG needs.
// koord-runtime-proxy says that it has no such call.
func TestW18Events(t *testing.T) {
	scenario{incumbent: "code = Unimplemented", run: func(n *node) error {
		n.start()
		ctx, cancel := context.WithTimeout(n.Context(), deadline)
		defer cancel()
		stream, err := n.kubelet.GetContainerEvents(ctx, &cri.GetEventsRequest{})
		n.must(err)
		for _, id := range []string{"first", "second"} {
			n.runtime.events <- &cri.ContainerEventResponse{ContainerId: id}
			event, err := stream.Recv()
			if err != nil {
				return n.well(err)
			}
			if err := want("event of", event.GetContainerId(), id); err != nil {
				return err
			}
		}
		return nil
	}}.test(t)
}
