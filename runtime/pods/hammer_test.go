package pods

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestHammer runs 20,000 containers through their lives while the store syncs,
// reads through and is queried. What it knows must be right all the time, and
// nothing may be left.
func TestHammer(t *testing.T) {
	const workers, podsEach, containersEach = 8, 50, 50
	s, n := NewStore(), newNode()
	var done atomic.Bool // and no context: whoever leaves early leaves a read behind
	var calls, others sync.WaitGroup
	others.Go(func() {
		for !done.Load() {
			if err := s.Sync(t.Context(), n); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		others.Go(func() {
			for !done.Load() {
				query(t, s, n)
			}
		})
	}
	for w := range workers {
		calls.Go(func() {
			for p := range podsEach {
				podLife(t, s, n, fmt.Sprintf("%d-%d", w, p), containersEach, p%2 == 0)
			}
		})
	}
	calls.Wait()
	done.Store(true)
	others.Wait()
	empty(t, s)
}

// podLife does what kubelet does: the backend first, then the store sees it.
func podLife(t *testing.T, s *Store, n *node, pod string, containers int, oneByOne bool) {
	n.addPod(pod, podConfig())
	run(s, pod, podConfig())
	for i := range containers {
		id := fmt.Sprintf("%s-%d", pod, i)
		n.addContainer(id, pod, appConfig())
		create(s, id, pod, appConfig())
		s.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: id}, nil)
		update(s, id, &runtimeapi.LinuxContainerResources{CpusetCpus: fmt.Sprint(i)})
		c, ok := s.Container(id)
		if got := c.Config.GetLinux().GetResources(); !ok || got.GetCpusetCpus() != fmt.Sprint(i) || got.GetCpuShares() != 204 {
			t.Errorf("%s has %v after its update", id, got)
		}
		n.setResources(id, c.Config.GetLinux().GetResources())
	}
	if got := len(s.Containers(pod)); got != containers {
		t.Errorf("%s has %d containers, want %d", pod, got, containers)
	}
	if oneByOne {
		for i := range containers {
			id := fmt.Sprintf("%s-%d", pod, i)
			n.remove(id)
			removeContainer(s, id)
		}
	}
	n.removePod(pod)
	removePod(s, pod)
	if _, ok := s.Pod(pod); ok || len(s.Containers(pod)) > 0 {
		t.Errorf("%s is removed, and still there", pod)
	}
}

// query asks everything a hook may ask, and reads what it gets.
func query(t *testing.T, s *Store, n *node) {
	for _, p := range s.Pods() {
		proto.Size(p.Config)
		for _, c := range s.Containers(p.ID) {
			proto.Size(c.Config)
			if c.PodID != p.ID {
				t.Errorf("%s of %s is listed with %s", c.ID, c.PodID, p.ID)
			}
		}
		s.FindPodByUID(p.Config.GetMetadata().GetUid())
	}
	pod := fmt.Sprintf("%d-%d", rand.IntN(8), rand.IntN(50))
	s.ReadPod(t.Context(), n, pod)
	s.ReadContainer(t.Context(), n, fmt.Sprintf("%s-%d", pod, rand.IntN(50)))
}
