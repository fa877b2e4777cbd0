package pods

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// during makes a node do something while it answers its first question of a
// kind: after it took the answer, before the store has it.
func during(n *node, method, id string, do func()) {
	var done atomic.Bool
	n.asked = func(m, i string) error {
		if m == method && i == id && done.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}
}

func smallNode() *node {
	n := newNode()
	n.addPod("p", podConfig())
	n.addContainer("c", "p", appConfig())
	return n
}

func resync(t *testing.T, s *Store, n *node) {
	t.Helper()
	if err := s.Sync(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func cpuShares(t *testing.T, s *Store, id string) int64 {
	t.Helper()
	c, ok := s.Container(id)
	if !ok {
		t.Fatalf("no container %s", id)
	}
	return c.Config.GetLinux().GetResources().GetCpuShares()
}

// A callDuringSync is a call that succeeds while a Sync runs, and what must hold
// after it.
type callDuringSync struct {
	name  string
	known bool // the store knows p and c before
	call  func(*Store)
	check func(*testing.T, *Store)
}

func callsDuringSync() []callDuringSync {
	holds := func(pods, containers int) func(*testing.T, *Store) {
		return func(t *testing.T, s *Store) { size(t, s, pods, containers) }
	}
	makeMore := func(s *Store) { run(s, "q", nil); create(s, "d", "p", nil) }
	set77 := func(s *Store) { update(s, "c", &runtimeapi.LinuxContainerResources{CpuShares: 77}) }
	has77 := func(t *testing.T, s *Store) {
		if got := cpuShares(t, s, "c"); got != 77 {
			t.Errorf("cpu_shares is %d, want the observed 77", got)
		}
	}
	stopped := func(t *testing.T, s *Store) {
		if p, _ := s.Pod("p"); p.State != runtimeapi.PodSandboxState_SANDBOX_NOTREADY {
			t.Errorf("the pod is %v, and was stopped", p.State)
		}
	}
	return []callDuringSync{
		{"create", true, makeMore, holds(2, 2)},
		{"create on an empty store", false, makeMore, holds(2, 2)},
		{"create and remove", true, func(s *Store) { create(s, "d", "p", nil); removeContainer(s, "d") }, holds(1, 1)},
		{"remove container", true, func(s *Store) { removeContainer(s, "c") }, holds(1, 0)},
		{"remove unknown container", false, func(s *Store) { removeContainer(s, "c") }, holds(1, 0)},
		{"remove pod", true, func(s *Store) { removePod(s, "p") }, holds(0, 0)},
		{"remove unknown pod with its container", false, func(s *Store) { removePod(s, "p") }, holds(0, 0)},
		{"update", true, set77, has77},
		{"update unknown", false, set77, has77},
		{"stop unknown pod", false, func(s *Store) { s.Observe(nil, &runtimeapi.StopPodSandboxRequest{PodSandboxId: "p"}, nil) }, stopped},
		{"clear", true, func(s *Store) { s.Clear() }, empty},
		{"clear and create", true, func(s *Store) { s.Clear(); makeMore(s) }, holds(1, 1)},
	}
}

// TestCallsDuringSync: what is observed while a Sync runs is newer than what it
// reads, at whichever of its questions that is.
func TestCallsDuringSync(t *testing.T) {
	points := []struct{ method, id string }{
		{"ListPodSandbox", ""}, {"ListContainers", ""}, {"PodSandboxStatus", "p"}, {"ContainerStatus", "c"},
	}
	for _, test := range callsDuringSync() {
		for _, point := range points {
			t.Run(test.name+" at "+point.method, func(t *testing.T) {
				s, n := NewStore(), smallNode()
				if test.known {
					resync(t, s, n)
				}
				during(n, point.method, point.id, func() { test.call(s) })
				resync(t, s, n)
				test.check(t, s)
				n.asked = nil
				if len(s.pods.reads)+len(s.containers.reads) > 0 {
					t.Error("the Sync left its notes behind")
				}
			})
		}
	}
}

// TestTwoSyncs: the one that began first must not undo what the later one read.
func TestTwoSyncs(t *testing.T) {
	for _, point := range []struct{ method, id string }{{"ListContainers", ""}, {"ContainerStatus", "c"}} {
		t.Run(point.method, func(t *testing.T) {
			s, n := NewStore(), smallNode()
			n.addContainer("gone", "p", nil)
			during(n, point.method, point.id, func() {
				n.remove("gone")
				n.addContainer("new", "p", nil)
				n.setResources("c", &runtimeapi.LinuxContainerResources{CpuShares: 99})
				resync(t, s, n)
			})
			resync(t, s, n)
			size(t, s, 1, 2)
			if _, ok := s.Container("gone"); ok {
				t.Error("what the later Sync did not find came back")
			}
			if got := cpuShares(t, s, "c"); got != 99 {
				t.Errorf("cpu_shares is %d, and was 99 when last read", got)
			}
		})
	}
}

// TestSyncOfASilentRuntime: the list tells whose a container is.
func TestSyncOfASilentRuntime(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.containers["c"].Info = nil
	resync(t, s, n)
	if got := s.Containers("p"); len(got) != 1 {
		t.Errorf("the pod has %d containers", len(got))
	}
}

func TestSyncForgets(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.addPod("q", nil)
	n.addContainer("d", "q", nil)
	resync(t, s, n)
	size(t, s, 2, 2)

	n.remove("q")
	n.remove("d")
	resync(t, s, n)
	size(t, s, 1, 1)

	// Gone after they were listed.
	during(n, "ListContainers", "", func() { n.remove("c") })
	resync(t, s, n)
	size(t, s, 1, 0)
	during(n, "ListContainers", "", func() { n.remove("p") })
	resync(t, s, n)
	empty(t, s)
}

// TestSyncSeesChangesBehindTheProxy: another client of the backend may change
// what the store knows.
func TestSyncSeesChangesBehindTheProxy(t *testing.T) {
	s, n := NewStore(), smallNode()
	resync(t, s, n)
	n.containers["c"].Status.Resources = &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: 99}}
	n.containers["c"].Status.State = runtimeapi.ContainerState_CONTAINER_EXITED
	resync(t, s, n)
	if c, _ := s.Container("c"); cpuShares(t, s, "c") != 99 || c.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("cpu_shares %d, state %v", cpuShares(t, s, "c"), c.State)
	}
}

func TestSyncFails(t *testing.T) {
	down := status.Error(codes.Unavailable, "the backend is away")
	refuse := func(method, id string) func(string, string) error {
		return func(m, i string) error {
			if m == method && i == id {
				return down
			}
			return nil
		}
	}
	for _, test := range []struct{ method, id, want string }{
		{"ListPodSandbox", "", "listing the backend's pod sandboxes"},
		{"ListContainers", "", "listing the backend's containers"},
		{"PodSandboxStatus", "p", "1 of the backend's 3 pods and containers could not be read, first: reading pod sandbox p from the backend"},
		{"ContainerStatus", "c", "1 of the backend's 3 pods and containers could not be read, first: reading container c from the backend"},
	} {
		t.Run(test.method, func(t *testing.T) {
			s, n := NewStore(), smallNode()
			n.addContainer("d", "p", nil)
			resync(t, s, n)
			n.asked = refuse(test.method, test.id)
			err := s.Sync(t.Context(), n)
			if !errors.Is(err, down) || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s: …", err, test.want)
			}
			size(t, s, 1, 2) // nothing is lost
		})
	}
}

func TestSyncSurvivesAPanic(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.asked = func(method, _ string) error {
		if method == "ContainerStatus" {
			panic("rubbish")
		}
		return nil
	}
	if err := s.Sync(t.Context(), n); err == nil || !strings.Contains(err.Error(), "container c from the backend: panic: rubbish") {
		t.Errorf("got %v", err)
	}
	size(t, s, 1, 1)
}

// An object that the backend lists and cannot describe is known by the list, and its status
// replaces that. One that is known stays as it was, but for its state.
func TestSyncOfObjectsThatTheBackendCannotDescribe(t *testing.T) {
	cannot := status.Error(codes.Unknown, "broken")
	n := smallNode()
	n.addPod("q", podConfig())
	n.addContainer("d", "q", appConfig())
	s, fresh := NewStore(), NewStore()
	resync(t, fresh, n)
	describe := func(method, id string) error {
		if method == "PodSandboxStatus" && id == "p" || method == "ContainerStatus" && id == "c" {
			return cannot
		}
		return nil
	}
	n.asked = describe
	n.containers["c"].Status.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	for range 2 {
		if err := s.Sync(t.Context(), n); !errors.As(err, new(*UnreadError)) || !errors.Is(err, cannot) || !strings.HasPrefix(err.Error(), "2 of the backend's 4 pods and containers") {
			t.Errorf("error %v", err)
		}
	}
	size(t, s, 2, 2)
	p, _ := s.Pod("p")
	c, _ := s.Container("c")
	if p.Config.GetMetadata().GetName() != "store" || p.Unreported&allOfPod != allOfPod || len(s.Containers("p")) != 1 {
		t.Errorf("the pod is %+v", p)
	}
	if c.PodID != "p" || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING || c.Config.GetMetadata().GetName() != "app" || c.Unreported&allOfContainer != allOfContainer {
		t.Errorf("the container is %+v", c)
	}
	if err := fresh.Sync(t.Context(), n); !errors.As(err, new(*UnreadError)) {
		t.Errorf("error %v", err)
	}
	n.asked = nil
	resync(t, s, n)
	for _, id := range []string{"c", "d"} {
		c, _ := s.Container(id)
		if want, _ := fresh.Container(id); !proto.Equal(c.Config, want.Config) || c.State != want.State || c.Unreported != 0 || want.Unreported != 0 {
			t.Errorf("%+v, want %+v", c, want)
		}
	}
	if p, _ := s.Pod("p"); !proto.Equal(p.Config, podConfig()) || p.Unreported != 0 {
		t.Errorf("the pod became %+v", p)
	}
	n.asked = func(method, id string) error {
		if method == "PodSandboxStatus" && id == "q" {
			return status.Error(codes.Unavailable, "away")
		}
		return describe(method, id)
	}
	if err := s.Sync(t.Context(), n); err == nil || errors.As(err, new(*UnreadError)) {
		t.Errorf("a backend that is away: error %v", err)
	}
}

// TestSyncIsParallelAndHoldsNoLock: eight calls are under way at a time, and all
// of them find the store free.
func TestSyncIsParallelAndHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := NewStore(), bigNode(50, 1)
		var now, most atomic.Int64
		n.asked = func(string, string) error {
			if v := now.Add(1); v > most.Load() {
				most.Store(v)
			}
			defer now.Add(-1)
			time.Sleep(time.Millisecond)
			s.Len()
			create(s, "own", "", nil)
			removeContainer(s, "own")
			return nil
		}
		start := time.Now()
		if err := s.Sync(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if took, want := time.Since(start), 15*time.Millisecond; took != want { // 2 lists, then 100 statuses, 8 at a time
			t.Errorf("100 calls of 1 ms took %v, want %v", took, want)
		}
		if most.Load() != statusCalls {
			t.Errorf("%d calls at once, want %d", most.Load(), statusCalls)
		}
	})
}

func TestSyncEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, n := NewStore(), bigNode(50, 1)
	during(n, "ContainerStatus", "pod-00000-0", cancel)
	if err := s.Sync(ctx, n); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestPodIsKnownByAnotherID: in Docker a pod that is its only container has another ID as it is made. It
// keeps its record, and its container a pod, at each point of a Sync, also if a call changes the container meanwhile.
func TestPodIsKnownByAnotherID(t *testing.T) {
	for _, point := range []struct{ method, id string }{{"PodSandboxStatus", "c"}, {"ContainerStatus", "c"}} {
		s, n := NewStore(), newNode()
		run(s, "random", nil)
		create(s, "c", "random", nil)
		made, _ := s.Pod("random")
		n.addPod("c", podConfig())
		n.addContainer("c", "c", appConfig())
		during(n, point.method, point.id, func() {
			c, _ := s.Container("c")
			if p, ok := s.Pod(c.PodID); !ok || p.Config != made.Config {
				t.Errorf("at %s the container's pod %s is %+v", point.method, c.PodID, p)
			}
			s.Observe(nil, &runtimeapi.StartContainerRequest{ContainerId: "c"}, nil)
		})
		resync(t, s, n)
		c, _ := s.Container("c")
		if c.PodID != "c" || c.State != runtimeapi.ContainerState_CONTAINER_RUNNING || len(s.Containers("c")) != 1 {
			t.Errorf("after a call at %s the container is %+v", point.method, c)
		}
		if p, ok := s.Pod("c"); !ok || p.ID != "c" || p.Requested != made.Requested {
			t.Errorf("the pod is %+v", p)
		}
		size(t, s, 1, 1)
	}
}

// hanging is a node that does not tell the status of one container.
type hanging struct {
	*node
	id string
}

func (h hanging) ContainerStatus(
	ctx context.Context, req *runtimeapi.ContainerStatusRequest, opts ...grpc.CallOption,
) (*runtimeapi.ContainerStatusResponse, error) {
	if req.GetContainerId() == h.id {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return h.node.ContainerStatus(ctx, req, opts...)
}

// A container whose status call hangs does not keep the store from being filled with the others.
func TestSyncOfAContainerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := smallNode()
		n.addContainer("d", "p", appConfig())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		s, start := NewStore(), time.Now()
		err := s.Sync(ctx, hanging{n, "c"})
		if unread := (*UnreadError)(nil); !errors.As(err, &unread) || unread.Count != 1 {
			t.Errorf("error %v, want one that was not read", err)
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
		if !s.Described("p") || s.Described("c") || !s.Described("d") {
			t.Error("the store should have p and d by their status, and c by the list")
		}
		size(t, s, 1, 2)
	})
}

// A backend that has no time to answer is asked again as a whole.
func TestSyncWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := NewStore().Sync(ctx, hanging{smallNode(), "c"}); err == nil || errors.As(err, new(*UnreadError)) {
			t.Errorf("error %v", err)
		}
	})
}
