package koord_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW04ParallelUpdates updates one container 64 times at once, over and over,
// with a hook server that echoes. koord-runtime-proxy shares maps between these
// calls, upon which Go ends it. wasmproxy runs with the race detector.
func TestW04ParallelUpdates(t *testing.T) {
	scenario{incumbent: "proxy has ended: fatal error: concurrent map", run: func(n *node) error {
		server := n.serve("10-a.json", echoing, "Ignore", allHooks...)
		n.start()
		_, container := n.running()
		const rounds = 10
		end := time.Now().Add(patience) // of the incumbent, which ends in some round
		more := func(round int) bool {
			if n.proxy == wasmproxy {
				return round < rounds
			}
			return time.Now().Before(end)
		}
		for round := 0; more(round); round++ {
			if err := n.well(n.updateAtOnce(container, 64)); err != nil {
				return err
			}
		}
		return want("updates that the server was told of", len(server.toldOf("PreUpdateContainerResources")), rounds*64)
	}}.test(t)
}

func (n *node) updateAtOnce(container string, times int) error {
	var wg sync.WaitGroup
	errs := make([]error, times)
	for i := range times {
		wg.Go(func() {
			errs[i] = n.update(&cri.UpdateContainerResourcesRequest{ContainerId: container, Linux: &cri.LinuxContainerResources{
				CpuShares: int64(100 + i), Unified: map[string]string{"memory.high": "max"},
			}})
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
